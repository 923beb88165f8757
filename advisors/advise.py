"""Judge a profile or the file that holds one, and say which profile and which machine were judged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from vani.advisors.judge import UNKNOWN_SYSTEM, Thresholds, judge
from vani.errors import DocumentError
from vani.schema.advice import Advice, JudgedFiles, ProfileRef, SystemRef
from vani.schema.document import dumps, loads
from vani.schema.long_profile import excerpt, most_important
from vani.schema.profile import Profile
from vani.schema.reading import Reading
from vani.schema.system import System

__all__ = ["Part", "advise_document", "judged_part"]


class Part(NamedTuple):
    """A profile with the files that are judged."""

    profile: Profile
    kept: tuple[int, ...] | None
    """Their positions in the whole list; None where it is whole."""
    judged: JudgedFiles | None
    """Their share of all I/O time, 0..1."""


def advise_document(
    profile: Profile | Reading | str | Path,
    system: System | None = None,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    files: int | None = None,
    part: Part | None = None,
) -> Advice:
    """Judge a profile, or the profile in a file, and say which file and which machine were judged.

    The digest of a file is that of its bytes; that of a model is of the YAML that it is written as.
    Of a profile that lists more than `files` files, the rules see those with the most I/O time, as if
    it had been made with `vani profile --files N`; None: all. Positions in evidence are those of the whole list.
    `part` is what `judged_part` gave for this profile and as many files, where that was asked for before.

    Raises
    ------
    DocumentError
        The file is no valid profile.
    InputError
        `select`, `ignore` or `thresholds` name what there is not.
    VaniError
        A rule failed.
    """
    machine = UNKNOWN_SYSTEM if system is None else system
    system_ref = SystemRef(
        name=None if system is None else system.name, sha256=_digest(dumps(machine).encode())
    )
    model, positions, judged = judged_part(profile, files) if part is None else part
    if isinstance(profile, Profile):
        ref = ProfileRef(path=None, sha256=_digest(dumps(profile).encode()))
    else:
        reading = profile if isinstance(profile, Reading) else Reading(profile)
        ref = ProfileRef(path=str(reading.path), sha256=reading.sha256())
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


def judged_part(profile: Profile | Reading | str | Path, files: int | None) -> Part:
    """The files that rules see; of a long document that Vani wrote, no others are read.

    Raises
    ------
    DocumentError
        The file is no valid profile.
    """
    if isinstance(profile, Profile):
        return _most_important(profile, files)
    reading = profile if isinstance(profile, Reading) else Reading(profile)
    return _load(reading.content(), str(reading.path), files)


def _load(content: bytes, where: str, files: int | None) -> Part:
    """Read a profile; of a long one that Vani wrote, only the entries of the files that are judged."""
    part = None if files is None else excerpt(content, files)
    if part is not None:
        try:
            model = loads(part.text.decode("utf-8-sig"), Profile, where=where)
        except (DocumentError, UnicodeDecodeError):
            pass  # The whole text is read, so that the error names the right line.
        else:
            judged = _judged_files(part.listed, part.kept, part.io_time_share)
            return Part(model, part.kept, judged)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text", where=where, todo="give a profile.yaml") from error
    return _most_important(loads(text, Profile, where=where), files)


def _most_important(profile: Profile, files: int | None) -> Part:
    if files is None or len(profile.files) <= files:
        return Part(profile, None, None)
    times = [file.io.time_s.total for file in profile.files if file.io.time_s.total is not None]
    if len(times) < len(profile.files):
        return Part(profile, None, None)
    positions, share = most_important(times, files)
    part = profile.model_copy(update={"files": [profile.files[i] for i in positions]})
    return Part(part, positions, _judged_files(len(profile.files), positions, share))


def _judged_files(listed: int, positions: tuple[int, ...], share: float) -> JudgedFiles:
    return JudgedFiles(listed=listed, judged=len(positions), io_time_share=min(1.0, share))


def _renumbered(advice: Advice, positions: tuple[int, ...]) -> Advice:
    """The advice with positions in `files` as they are in the whole list."""
    if positions == tuple(range(len(positions))):
        return advice

    def whole(match: re.Match[str]) -> str:
        index = int(match[1])
        return f"files[{positions[index]}]" if index < len(positions) else match[0]

    changed = []
    for recommendation in advice.recommendations:
        evidence = [
            item.model_copy(update={"attribute": re.sub(r"^files\[(\d+)\]", whole, item.attribute)})
            for item in recommendation.evidence
        ]
        changed.append(recommendation.model_copy(update={"evidence": evidence}))
    return advice.model_copy(update={"recommendations": changed})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
