"""A report on one workload for people: `model` chooses its contents, and a module per format writes it."""
