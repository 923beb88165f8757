"""Sessions of `vani tune` as text and as a script."""
