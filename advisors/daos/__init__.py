"""Rules about files on DAOS."""
