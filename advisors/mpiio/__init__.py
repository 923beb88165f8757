"""Hints and calls of MPI-IO."""
