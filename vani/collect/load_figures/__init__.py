"""What servers and clients of Lustre print about themselves, as a snapshot of the machine."""
