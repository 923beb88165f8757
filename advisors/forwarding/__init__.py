"""Rules about the I/O nodes between compute nodes and the file system."""
