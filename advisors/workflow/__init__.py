"""Rules about the parts of a workload: apps on nodes, checkpoints over time."""
