"""Commands of `vani plan`."""
