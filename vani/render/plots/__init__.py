"""Plots of a profile, each one Vega-Lite specification; `catalogue` is the door."""
