"""Rules about many files and the folders that they are in, on any file system."""
