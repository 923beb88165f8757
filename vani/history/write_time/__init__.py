"""Models of how long a write takes, fitted to samples: small scales in, larger ones out."""
