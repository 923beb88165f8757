"""Rules about HDF5 files and data sets."""
