"""The functions `vani.centre.history_*`, one per command of `vani history`."""
