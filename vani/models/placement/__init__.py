"""Where stripes of files lie: bytes of each stripe, and ways to choose targets for them."""
