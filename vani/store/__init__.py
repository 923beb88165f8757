"""The store: the calls of one trace as a Parquet data set, with a manifest that describes it."""
