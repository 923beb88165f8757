"""Integer columns under integer keys: numbering, grouping, adding up; intervals."""
