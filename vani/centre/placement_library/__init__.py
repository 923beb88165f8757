"""The C library that gives new files their planned layout, and the table that it reads."""
