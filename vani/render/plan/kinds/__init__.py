"""One module for each kind of plan: it has `body(plan)` and `missing(plan)`, lists of text."""
