"""The placement of stripes: the bytes of each stripe, and algorithms that choose targets."""
