"""Compression of a program's input and output."""
