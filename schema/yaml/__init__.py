"""YAML in and out, in the narrow form of Vani's documents."""
