"""The functions `vani.centre.model_*`, one per command of `vani model`."""
