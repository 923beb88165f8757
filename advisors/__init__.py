"""From a profile and a system to verdicts: one rule per file."""

from __future__ import annotations

# An editable install puts the repository's root on the path, where this folder has a bare name too.
if __name__ != "vani.advisors":
    raise ImportError(f"this package is vani.advisors: import it by that name, not as {__name__!r}")
