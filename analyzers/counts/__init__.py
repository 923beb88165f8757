"""A profile from counts per process and file, without decoding calls."""
