"""Entities of the profile, one per module: from what was measured to the models of the schema."""
