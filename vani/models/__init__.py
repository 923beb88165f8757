"""Performance models that rules share. Each states its equations and their source."""
