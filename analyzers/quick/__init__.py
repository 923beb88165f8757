"""A profile from the number of occurrences of each call: no order, no times, and no cost per call."""
