"""The parts of a workload in space and time: apps on nodes, checkpoints in the run."""
