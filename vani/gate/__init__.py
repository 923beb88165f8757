"""The gate: checks of a profile against a policy and baselines. It sees documents, never calls."""
