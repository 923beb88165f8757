"""The functions `vani.api.history_*`, one per command of `vani history`."""
