"""The command line: each command parses its arguments, calls the library once, and writes the result."""
