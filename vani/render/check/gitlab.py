"""The verdict of a check as a code quality report of GitLab.

Source: GitLab documentation, "Code Quality report format": an array of objects with description, check_name,
fingerprint, severity, location.path (relative to the repository, not starting with ./) and location.lines.begin.
GitLab silently drops an entry that its own schema (`app/validators/json_schemas/codeclimate.json`) refuses.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.check.judgement import cut, findings, fingerprint, place
from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.check import Check

# GitLab knows info, minor, major, critical and blocker.
_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}
# A line in a widget, where longer text is cut off anyway.
_TEXT: Final = 1024


def render(check: Check, *, version: str) -> str:
    """Write an entry per cause and per uncaused failure, worst first; exceptions and unknowns are not defects."""
    del version  # the format has no field for the tool
    entries = []
    for finding in findings(check):
        path, line = place(check, finding)
        text = (finding.message or finding.id).rstrip(".")
        entries.append(
            {
                "description": cut(f"{text}; {finding.todo}" if finding.todo else text, _TEXT) or "a check failed",
                "check_name": cut(finding.check, 255) or "check",
                "fingerprint": fingerprint(finding),
                "severity": _SEVERITIES[finding.level],
                "location": {"path": _in_repository(path), "lines": {"begin": line}},
            }
        )
    return json_text(entries, ascii_only=True)


def _in_repository(path: str) -> str:
    """A path in the repository.

    GitLab drops entries with absolute or outside paths, so of these only the end is kept.
    """
    text = posixpath.normpath("/" + one_line(path)).lstrip("/")
    return text or "."
