"""Text of documents: YAML, JSON and TOML to plain trees with the line of each value, and trees to YAML and JSON."""
