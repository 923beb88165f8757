"""Data that is nearer to the compute nodes than the file system, and for how long."""
