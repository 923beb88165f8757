"""The server behind `vani mcp`: the folders it reads, its answers as text, and its tools."""
