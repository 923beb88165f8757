"""Load figures of servers: how a snapshot of the storage is recorded."""
