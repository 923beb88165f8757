"""How files lie on the targets of a BeeGFS."""
