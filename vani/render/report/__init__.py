"""A report of one workload for people: `prepared` says what it holds; `page`, `markdown` and `text` write it."""
