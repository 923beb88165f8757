"""What is particular to each kind of prediction: a module of its name has `body(prediction)`, lines of text."""
