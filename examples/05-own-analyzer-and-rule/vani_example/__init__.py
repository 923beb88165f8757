"""A measure and a rule as another distribution brings them."""
