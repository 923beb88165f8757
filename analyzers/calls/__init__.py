"""Batches of calls as measures see them, and what several measures derive from a batch."""
