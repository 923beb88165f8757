"""Conversion of the call table to the parts of a profile: one entity or measure per file."""

# An editable install puts the repository's root on the path, so this folder is also importable without `vani.`.
if __name__ != "vani.analyzers":
    raise ImportError(f"this package is vani.analyzers: import it by that name, not as {__name__!r}")
