"""The files that a run is going to create: their number, processes and sizes."""
