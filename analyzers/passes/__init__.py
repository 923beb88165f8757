"""Passes over all calls: the protocol of a measure, one pass, and the order of the passes."""
