"""Rules about files on a Lustre file system."""
