"""How files lie on the targets of a Lustre file system."""
