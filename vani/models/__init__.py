"""Performance models that rules share; each states its equations and where they are from."""
