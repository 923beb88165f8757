"""Traces made for measuring: an encoder, a slow decoder to check it against, and a generator of huge traces."""
