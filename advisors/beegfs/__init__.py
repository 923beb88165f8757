"""Rules about files on a BeeGFS."""
