"""A snapshot of the machine from the output of servers and clients of Lustre."""
