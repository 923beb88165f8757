"""Which behaviour an application's next run has: behaviours by number, and what follows what (AIOT, Lei et al.)."""
