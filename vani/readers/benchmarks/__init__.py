"""Output of IOR, mdtest and IO500, and the folders that contain it."""
