"""The gate: what a policy says about a profile, alone or against baselines. It sees documents, never calls."""
