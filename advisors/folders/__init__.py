"""Rules about many files and their folders, on any file system."""
