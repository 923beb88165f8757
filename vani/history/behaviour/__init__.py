"""The behaviour of an application's next run: behaviours by number, and which follows which (AIOT, Lei et al.)."""
