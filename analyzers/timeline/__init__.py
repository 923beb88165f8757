"""Time-resolved data from stores: bytes and I/O time over time and processes."""
