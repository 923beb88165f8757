"""The placement of stripes: bytes of each stripe, and ways to choose targets for them."""
