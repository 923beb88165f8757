"""Plans for all jobs of a machine. Each is a pure function from documents to a document."""
