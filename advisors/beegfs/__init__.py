"""Files on the targets of a BeeGFS."""
