"""Rules about compression of a program's input and output."""
