"""Rules that turn a profile and a system into verdicts, one rule per file."""


# An editable install puts the repository's root on the path, from which this folder could be imported as `advisors`.
if __name__ != "vani.advisors":
    raise ImportError(f"this package is vani.advisors: import it by that name, not as {__name__!r}")
