"""Entities of the profile, one per module: from measurements to the models of the schema."""
