"""A profile from counts per process and file: no call is decoded."""
