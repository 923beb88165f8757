"""The functions `vani.api.model_*`, one per command of `vani model`."""
