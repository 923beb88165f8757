"""Properties of HDF5 files and data sets."""
