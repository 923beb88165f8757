"""Accuracy of the catalogue of rules on traces of programs with known behaviour."""
