"""The one service of a centre, its file centre.toml, and the hook in its jobs."""
