"""One module for each kind of plan, with the functions `body(plan)` and `missing(plan)` that return lists of text."""
