"""Passes over a trace's parts as Dask graphs: on this machine or on a user's Dask cluster."""
