"""Commands of `vani history`."""
