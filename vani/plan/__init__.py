"""Plans for all jobs of a machine: pure functions from documents to a document."""
