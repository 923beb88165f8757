"""Many runs: their cost, the settings that would save most of it, and a prediction of the next ones."""
