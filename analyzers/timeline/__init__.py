"""Time-resolved data of stores: bytes and I/O time over time and processes."""
