"""A history of many runs: their cost, the settings that would save most of it, and predictions of the next runs."""
