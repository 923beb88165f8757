"""Checks made by hand, and any check that the schema allows, for tests of their output formats."""

from __future__ import annotations

from hypothesis import strategies as st

from vani.schema.check import Check, CheckCounts, Excepted, Judgement, PolicyPlace, Source

STATUSES = {"pass": "passed", "excepted": "excepted", "unknown": "unknown"}


def judgement(name="metadata-ops", **changes) -> Judgement:
    known = {
        "id": f"{name}: workflow.io.ops.metadata",
        "check": name,
        "kind": "budget",
        "level": "error",
        "status": "fail",
        "attribute": "workflow.io.ops.metadata",
        "target": None,
        "value": 4097,
        "limit": "<= 100",
        "baseline": None,
        "change": None,
        "message": "4,097 metadata operations; at most 100 are allowed",
        "reason": "the metadata server is shared",
        "todo": "open the file once",
        "excepted": None,
        "place": PolicyPlace(path="vani.toml", line=7),
    }
    return Judgement(**known | changes)


def passed(name="share", **changes) -> Judgement:
    return judgement(
        name, status="pass", value=0.25, limit="<= 0.5", message="a share of 0.25", todo=None, **changes
    )


def excepted(name="random", **changes) -> Judgement:
    until = Excepted(until="2027-03-31", reason="waits for the new reader")
    return judgement(name, status="excepted", level="warning", excepted=until, **changes)


def unknown(name="bandwidth", **changes) -> Judgement:
    return judgement(
        name, status="unknown", value=None, message="the attribute is null: no end of a file is known",
        todo=None, **changes,
    )  # fmt: skip


def check(*judgements: Judgement, **changes) -> Check:
    counts = dict.fromkeys(CheckCounts.model_fields, 0)
    for one in judgements:
        counts[STATUSES.get(one.status, one.level)] += 1
    known = {
        "schema": "vani.check/1",
        "version": "0.1.0",
        "profile": Source(path="runs/profile.yaml", sha256="a" * 64),
        "policy": Source(path="vani.toml", sha256="b" * 64),
        "baselines": [],
        "fail_on": "error",
        "verdict": "fail" if counts["error"] else "pass with warnings" if counts["warning"] else "pass",
        "counts": CheckCounts(**counts),
        "judgements": list(judgements),
    }
    return Check(**known | changes)


def mixed() -> Check:
    """One judgement of each status, and a failure below `fail_on`."""
    drop = judgement(
        "bandwidth-drop", id="bandwidth-drop: apps[ior]", kind="change", level="warning", attribute="apps[0].io.bandwidth.write",
        target="ior", value=5e8, limit=">= -10 %", baseline=1e9, change=-0.5,
        message="half as fast as the baseline", reason=None, todo=None, place=PolicyPlace(path="vani.toml", line=12),
    )  # fmt: skip
    return check(judgement(), drop, excepted(), unknown(), passed())


# Everything that can break a format, more often than by chance; lone surrogates are in `st.characters`.
_PIECES = st.sampled_from(
    ["\n", "\r\n", "::error::x", "##[add-mask]x", "%0A", "]]>", "<b>", "&amp;", "|", "\\", "`", "[a](b)", "\0", "\x1b[31m", "￾", "\udc80",
     "\u202e", ",", ":", "..", "/", "./", "@all", "www.x.org", "[[ATTACHMENT|/etc/passwd]]", "'\"", "${{ x }}", "http://x.org"]
)  # fmt: skip
texts = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=20),
    st.lists(st.one_of(_PIECES, st.text(max_size=3)), max_size=5).map("".join),
)
numbers = st.none() | st.integers(-(2**70), 2**70) | st.floats()


@st.composite
def checks(draw) -> Check:
    maybe = st.none() | texts
    sources = st.builds(Source, path=texts, sha256=texts)
    judgements = st.builds(
        Judgement,
        id=texts, check=texts, kind=st.sampled_from(["budget", "change", "rule", "missing", "exception"]),
        level=st.sampled_from(["error", "warning", "note"]),
        status=st.sampled_from(["pass", "fail", "excepted", "unknown"]),
        attribute=maybe, target=maybe, value=numbers | texts, limit=maybe, baseline=numbers,
        change=st.none() | st.floats(), message=texts, reason=maybe, todo=maybe,
        excepted=st.none() | st.builds(Excepted, until=texts, reason=texts),
        place=st.none() | st.builds(PolicyPlace, path=texts, line=st.integers(-5, 10**6)),
    )  # fmt: skip
    given = draw(st.lists(judgements, max_size=14, unique_by=lambda one: one.id))
    return check(
        *given,
        version=draw(texts), profile=draw(sources), policy=draw(st.none() | sources),
        baselines=draw(st.lists(sources, max_size=2)), fail_on=draw(st.sampled_from(["error", "warning", "note"])),
    )  # fmt: skip
