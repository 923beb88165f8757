"""Profiles for tests of the report, derived from real ones: many files, hostile names, nothing known."""

from __future__ import annotations

import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import vani
from vani.render.report.model import Inputs
from vani.schema.advice import Advice
from vani.schema.profile import FileEntity, Profile
from vani.schema.timeline import KindSeconds

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
TRACES = ROOT / "tests" / "data" / "traces"

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&`|\u202e\u2028\x00\x07\x1b[31m\n::error::x\ud800"
"""Text that could break a page, a terminal or a merge request."""


@cache
def golden(name: str = "v3-cm1like-16r") -> Profile:
    """A real profile."""
    return Profile.load(GOLDEN / f"{name}.yaml")


@cache
def profiled(name: str = "v3-ckpt-then-restart-8r", **options: Any) -> Profile:
    """The profile of a real trace, made now."""
    with tempfile.TemporaryDirectory() as folder:
        return vani.profile(TRACES / name, store=Path(folder), **options)


@cache
def judged(name: str = "v3-cm1like-16r") -> Advice:
    """Advice of the rules on a real profile."""
    return vani.advise(golden(name), system="generic-lustre")


def inputs_of(profile: Profile, advice: Advice | None = None, heat: Any = "there is not a store") -> Inputs:
    """The inputs of a report."""
    return Inputs(profile, "0" * 64, judged() if advice is None else advice, heat, {"POS001": "read-by-all"}, "1.2.3")


def file_at(path: str, **changed: Any) -> FileEntity:
    """A real file with another path."""
    io_time = changed.pop("io_time", None)
    moved = changed.pop("moved", None)
    file = golden().files[0].model_copy(update={"path": path, **changed})
    io = file.io
    if io_time is not None:
        io = io.model_copy(update={"time_s": io.time_s.model_copy(update={"total": io_time})})
    if moved is not None:
        io = io.model_copy(update={"bytes": io.bytes.model_copy(update={"read": 0, "written": moved, "total": moved})})
    return file.model_copy(update={"io": io})


def with_files(files: list[FileEntity], profile: Profile | None = None) -> Profile:
    """A profile that lists these files."""
    return (profile or golden()).model_copy(update={"files": files})


def hostile(count: int = 1) -> tuple[Profile, Advice]:
    """A profile and its advice in which every name is hostile."""
    profile = golden()
    files = [file_at(f"/s/{HOSTILE * 20}/{i}/{HOSTILE}") for i in range(count)]
    apps = [app.model_copy(update={"name": HOSTILE}) for app in profile.apps]
    phases = [phase.model_copy(update={"app": HOSTILE}) for phase in profile.phases or []]
    layers = [layer.model_copy(update={"app": HOSTILE}) for layer in profile.interfaces]
    traces = [t.model_copy(update={"app": HOSTILE, "path": HOSTILE, "problems": [HOSTILE], "complete": False}) for t in profile.traces]
    why = dict.fromkeys((*profile.provenance, HOSTILE), HOSTILE)
    made = profile.model_copy(
        update={"files": files, "apps": apps, "phases": phases, "interfaces": layers, "traces": traces, "provenance": why}
    )
    advice = judged()
    found = [
        one.model_copy(
            update={
                "severity": "high",
                "name": HOSTILE,
                "reason": HOSTILE,
                "target": one.target.model_copy(update={"path": HOSTILE, "app": HOSTILE}),
                "current": {HOSTILE: HOSTILE},
                "evidence": [proof.model_copy(update={"attribute": HOSTILE, "value": HOSTILE}) for proof in one.evidence],
                "apply": [f"echo {HOSTILE}"],
                "source": [HOSTILE],
            }
        )
        for one in advice.recommendations
    ]
    silent = [one.model_copy(update={"why": HOSTILE}) for one in advice.no_recommendation]
    return made, advice.model_copy(update={"recommendations": found, "no_recommendation": silent})


def seconds_like(read: list[list[int]], written: list[list[int]]) -> KindSeconds:
    """A nanosecond for each byte, and flushes and metadata in addition to the writes."""

    def times(table: list[list[int]], factor: float) -> list[list[float]]:
        return [[factor * amount for amount in row] for row in table]

    return KindSeconds(read=times(read, 1e-9), write=times(written, 1e-9), sync=times(written, 1e-8), metadata=times(written, 1e-12))


class Page(HTMLParser):
    """The elements of a page, with the text in each, and unclosed ones."""

    VOID = frozenset({"meta", "input", "wbr", "img", "br", "link"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.wrong.append(tag)
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """Attributes of the elements of a kind that have these attributes."""
        found = [attrs for name, attrs in self.elements if name == tag]
        return [a for a in found if all(a.get(k.rstrip("_")) == v for k, v in wanted.items())]

    def text(self) -> str:
        """The readable text, without scripts and styles."""
        return "".join(data for inside, data in self.texts if not {"script", "style"} & set(inside))
