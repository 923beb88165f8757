"""Pages of `vani history serve`: HTML for a browser, with charts by Vega, and the files that they load."""
