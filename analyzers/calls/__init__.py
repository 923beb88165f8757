"""Batches of calls in the form that measures use, and values derived from a batch for several measures."""
