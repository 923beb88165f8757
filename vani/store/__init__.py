"""The store: the calls of one trace as a Parquet dataset, with a manifest that describes it."""
