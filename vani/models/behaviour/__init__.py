"""How well behaviours of runs are predicted."""
