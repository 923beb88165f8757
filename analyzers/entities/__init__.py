"""Entities of the profile, one per module: they convert measurements to models of the schema."""
