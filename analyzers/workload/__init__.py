"""The workload before its calls are read, and what the first pass over them finds."""
