"""Many runs: what they cost, which setting would win it back, and what comes next."""
