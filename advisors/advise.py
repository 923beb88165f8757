"""Judges a profile or the profile in a file. The advice names the profile and the machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from vani.advisors.judge import UNKNOWN_SYSTEM, Thresholds, judge
from vani.schema.advice import Advice, JudgedFiles, Observation, ProfileRef, Recommendation, SystemRef
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.saved_profile import ProfilePart, SavedProfile, most_important
from vani.schema.system import System

_Entry = TypeVar("_Entry", Recommendation, Observation)


def advise_document(
    profile: Profile | SavedProfile | str | Path,
    system: System | None = None,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    files: int | None = None,
    part: ProfilePart | None = None,
) -> Advice:
    """Judge a profile, or the profile in a file. The advice names the file and the machine.

    The digest of a file is of its bytes, the digest of a model of its YAML.
    If a profile lists more than `files` files, the rules see those with the most I/O time, as if
    it had been made with `vani profile --files N`. None: all files. Positions in evidence refer to the whole list.
    `part` is the result of an earlier `judged_part` for this profile and the same number of files.

    Raises
    ------
    DocumentError
        The file is not a valid profile.
    InputError
        `select`, `ignore` or `thresholds` names a rule or a threshold that does not exist.
    VaniError
        A rule failed.
    """
    machine = UNKNOWN_SYSTEM if system is None else system
    system_ref = SystemRef(
        name=None if system is None else system.name, sha256=_digest(dumps(machine).encode())
    )
    if isinstance(profile, (str, Path)):
        profile = SavedProfile.read(profile)
    model, positions, judged = judged_part(profile, files) if part is None else part
    if isinstance(profile, Profile):
        ref = ProfileRef(path=None, sha256=_digest(dumps(profile).encode()))
    else:
        ref = ProfileRef(path=profile.where, sha256=profile.sha256)
    advice = judge(
        model,
        machine,
        profile_ref=ref.model_copy(update={"files": judged}),
        system_ref=system_ref,
        select=select,
        ignore=ignore,
        thresholds=thresholds,
    )
    return advice if positions is None else _renumbered(advice, positions)


def judged_part(profile: Profile | SavedProfile, files: int | None) -> ProfilePart:
    """The profile with the files that rules see. Raises DocumentError if it is invalid."""
    if isinstance(profile, SavedProfile):
        return profile.most_important(files)
    if files is None or len(profile.files) <= files:
        return ProfilePart(profile, None, None)
    times = [file.io.time_s.total for file in profile.files if file.io.time_s.total is not None]
    if len(times) < len(profile.files):
        return ProfilePart(profile, None, None)
    positions, share = most_important(times, files)
    part = profile.model_copy(update={"files": [profile.files[position] for position in positions]})
    return ProfilePart(part, positions, JudgedFiles(listed=len(times), judged=files, io_time_share=min(1.0, share)))


def _renumbered(advice: Advice, positions: tuple[int, ...]) -> Advice:
    """The advice with positions in `files` converted to those in the whole list."""
    if positions == tuple(range(len(positions))):
        return advice

    def in_whole_list(match: re.Match[str]) -> str:
        index = int(match[1])
        return f"files[{positions[index]}]" if index < len(positions) else match[0]

    def renumbered(entry: _Entry) -> _Entry:
        evidence = [
            item.model_copy(update={"attribute": re.sub(r"^files\[(\d+)\]", in_whole_list, item.attribute)})
            for item in entry.evidence
        ]
        return entry.model_copy(update={"evidence": evidence})

    return advice.model_copy(
        update={
            "diagnosis": [renumbered(entry) for entry in advice.diagnosis or ()],
            "recommendations": [renumbered(entry) for entry in advice.recommendations],
        }
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
