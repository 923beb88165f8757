"""Pages of `vani history serve`: HTML for a browser, with Vega charts, and the files that they load."""
