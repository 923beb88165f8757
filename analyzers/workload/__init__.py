"""The workload before its calls are read, and the findings of the first pass over them."""
