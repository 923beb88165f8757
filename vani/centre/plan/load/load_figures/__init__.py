"""A snapshot of the machine from the output of Lustre servers and clients."""
