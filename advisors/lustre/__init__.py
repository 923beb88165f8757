"""Files on the targets of a Lustre file system."""
