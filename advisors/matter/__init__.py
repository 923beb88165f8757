"""The rule on whether I/O matters in a run at all."""
