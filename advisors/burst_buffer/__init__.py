"""Rules about storage nearer to the compute nodes than the file system."""
