"""Compression of what a program reads and writes."""
