"""One module for each kind of prediction, with a function `body(prediction)` that returns lines of text."""
