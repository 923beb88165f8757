"""Which files a run is going to create: how many, by which process, how large."""
