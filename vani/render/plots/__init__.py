"""Plots of a profile, each one Vega-Lite specification; `catalogue` is the entry point."""
