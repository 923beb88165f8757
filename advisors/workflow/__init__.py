"""How the parts of a workload lie in space and time: apps on nodes, checkpoints in the run."""
