"""Judge a profile or the file that holds one, and say which profile and which machine were judged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from vani.advisors.judge import UNKNOWN_SYSTEM, Thresholds, judge
from vani.errors import DocumentError
from vani.schema.advice import Advice, JudgedFiles, ProfileRef, SystemRef
from vani.schema.document import dumps, loads
from vani.schema.long_profile import excerpt, most_important
from vani.schema.profile import Profile
from vani.schema.reading import Reading
from vani.schema.system import System

__all__ = ["advise_document"]


def advise_document(
    profile: Profile | Reading | str | Path,
    system: System | None = None,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    files: int | None = None,
    read: Profile | None = None,
) -> Advice:
    """Judge a profile, or the profile in a file, and say which file and which machine were judged.

    The digest of a file is that of its bytes; that of a model is of the YAML that it is written as.
    Of a profile that lists more than `files` files, the rules see those with the most I/O time, as if
    it had been made with `vani profile --files N`; None: all. Positions in evidence are those of the whole list.
    `read` is what the file holds, where the caller has read all of it: a long one takes seconds.

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
    if isinstance(profile, Profile):
        part, ref = (
            _most_important(profile, files),
            ProfileRef(path=None, sha256=_digest(dumps(profile).encode())),
        )
    else:
        reading = profile if isinstance(profile, Reading) else Reading(profile)
        part = (
            _load(reading.content(), str(reading.path), files)
            if read is None
            else _most_important(read, files)
        )
        ref = ProfileRef(path=str(reading.path), sha256=reading.sha256())
    model, kept, judged = part
    advice = judge(
        model,
        machine,
        profile_ref=ref.model_copy(update={"files": judged}),
        system_ref=system_ref,
        select=select,
        ignore=ignore,
        thresholds=thresholds,
    )
    return advice if kept is None else _renumbered(advice, kept)


Part = tuple[Profile, tuple[int, ...] | None, JudgedFiles | None]
"""A profile with some of its files, their positions in the whole list, and how much they are of it."""


def _load(content: bytes, where: str, files: int | None) -> Part:
    """Read a profile; of a long one that Vani wrote, only the entries of the files that are judged."""
    found = None if files is None else excerpt(content, files)
    if found is not None:
        try:
            model = loads(found.text.decode("utf-8-sig"), Profile, where=where)
        except (DocumentError, UnicodeDecodeError):
            pass  # The whole text is read, so that the error names the right line.
        else:
            return model, found.kept, _judged_files(found.listed, found.kept, found.io_time_share)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text", where=where, todo="give a profile.yaml") from error
    return _most_important(loads(text, Profile, where=where), files)


def _most_important(profile: Profile, files: int | None) -> Part:
    if files is None or len(profile.files) <= files:
        return profile, None, None
    times = [one.io.time_s.total for one in profile.files if one.io.time_s.total is not None]
    if len(times) < len(profile.files):
        return profile, None, None
    kept, share = most_important(times, files)
    part = profile.model_copy(update={"files": [profile.files[i] for i in kept]})
    return part, kept, _judged_files(len(profile.files), kept, share)


def _judged_files(listed: int, kept: tuple[int, ...], share: float) -> JudgedFiles:
    return JudgedFiles(listed=listed, judged=len(kept), io_time_share=min(1.0, share))


def _renumbered(advice: Advice, kept: tuple[int, ...]) -> Advice:
    """The advice with positions in `files` as they are in the whole list."""
    if kept == tuple(range(len(kept))):
        return advice

    def whole(match: re.Match[str]) -> str:
        index = int(match[1])
        return f"files[{kept[index]}]" if index < len(kept) else match[0]

    changed = []
    for one in advice.recommendations:
        evidence = [
            item.model_copy(update={"attribute": re.sub(r"^files\[(\d+)\]", whole, item.attribute)})
            for item in one.evidence
        ]
        changed.append(one.model_copy(update={"evidence": evidence}))
    return advice.model_copy(update={"recommendations": changed})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
