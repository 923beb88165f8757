"""The gate: checks a profile against a policy and baselines. It works on documents only, never on calls."""
