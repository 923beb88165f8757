"""Access to a DAOS, whose objects look like files."""
