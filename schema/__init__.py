"""Models of all documents: profile, advice, system, job, policy, plan and others."""

# An editable install puts the repository's root on the path, where this folder has a bare name too.
if __name__ != "vani.schema":
    raise ImportError(f"this package is vani.schema: import it by that name, not as {__name__!r}")
