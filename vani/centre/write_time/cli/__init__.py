"""Commands of `vani model`."""
