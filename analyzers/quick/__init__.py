"""A profile from how often each call occurs: no order, no times, and no cost per call."""
