"""How programs reach a DAOS, whose objects look like files."""
