"""Documents as text for eyes and for other programs."""
