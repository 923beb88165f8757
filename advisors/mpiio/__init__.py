"""Rules about MPI-IO hints and calls."""
