"""Text that IOR, mdtest and IO500 write, and the folders that hold it."""
