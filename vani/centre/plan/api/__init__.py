"""The functions `vani.api.plan_*`, one per command of `vani plan`."""
