"""Remarks on the verdict: reasons why the numbers of a report may mislead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vani.models.verdict import could_matter
from vani.render.answers import library_words
from vani.render.report.bounds import Limits, clip
from vani.render.wording import judged_part, matters
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.units import format_bytes

MOST: Final = 12


def remarks(profile: Profile, advice: Advice, limits: Limits) -> tuple[str, ...]:
    """All remarks, those that affect most numbers first."""
    sentences = [
        *_blind_spots(profile),
        *filter(None, (library_words(profile),)),
        *((advice.remainder.sentence,) if advice.remainder is not None else ()),
        *_unseen_writes(profile),
        *_doubts(profile),
    ]
    if profile.workflow.runtime_s is None:
        why = profile.provenance.get("workflow.runtime_s") or "the profile was made without time stamps"
        if why not in matters(advice, profile):
            sentences.append(why)
    if advice.profile.files is not None:
        sentences.append(judged_part(advice.profile.files))
    return tuple(clip(sentence, limits.prose) for sentence in sentences[:MOST])


def _blind_spots(profile: Profile) -> Iterator[str]:
    """Activity missing from the trace: the files, the probable cause, and how to record it."""
    for entry in could_matter(profile):
        files = [clip(path, 60) for path in entry.files[:3]]
        more = f" and {len(entry.files) - len(files)} more" if len(entry.files) > len(files) else ""
        where = f" ({', '.join(files)}{more})" if files else ""
        yield f"Not seen: {entry.cause}{where}. To see it: {entry.see_with}."


def _unseen_writes(profile: Profile) -> Iterator[str]:
    """Apps whose files others read, although no write to them was recorded."""
    edges = profile.workflow.app_dependencies or ()
    # Profiles of older versions have 0 for unknown bytes.
    makers = dict.fromkeys(
        edge.producer
        for edge in edges
        if edge.bytes_written is None or (edge.bytes_read and not edge.bytes_written)
    )
    if makers:
        names = [clip(name, 40) for name in makers]
        who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield (
            f"Others read files of {who} to which no write is in the trace: formatted output, such as fprintf, often "
            "leaves no record. Bytes written are more than shown."
        )


def _doubts(profile: Profile) -> Iterator[str]:
    past = profile.workflow.io.past_end.read
    if past:
        yield f"{format_bytes(past)} of the reads are past the end of their file and returned no data."
    for side in ("read", "write"):
        why = profile.provenance.get(f"io.bandwidth.{side}")
        if why:
            yield f"Bandwidth of {side}s: {why}"
