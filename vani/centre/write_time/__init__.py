"""Models of write time, fitted to samples at small scales to predict larger ones."""
