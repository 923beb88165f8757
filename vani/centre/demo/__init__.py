"""The demonstration of a centre."""
