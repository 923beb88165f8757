"""Many runs of one application: what was, and what comes next."""
