"""The nodes between compute nodes and file system that do their I/O."""
