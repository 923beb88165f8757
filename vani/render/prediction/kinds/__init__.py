"""One module for each kind of prediction: it has `body(prediction)`, lines of text."""
