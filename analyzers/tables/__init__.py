"""Columns of integers under integer keys: numbering, grouping, adding up; intervals."""
