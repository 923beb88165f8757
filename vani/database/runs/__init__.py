"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and what is asked of them."""
