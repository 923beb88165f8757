"""The texts that Vani makes of a profile, and properties they have for every trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import vani
from vani.advisors.judge import advise_document
from vani.render.screen import to_text as advice_text
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.systems import load_system

__all__ = ["advice_of", "check_story", "texts_of"]

ALL_CLEAR = ("nothing to do", "Nothing needs to be done", "nothing to gain", "could be saved", "could be won")
"""Phrases that are only allowed if everything was recorded."""


def advice_of(profile: Profile, machine: str | None = "generic-lustre") -> Advice:
    return advise_document(profile, None if machine is None else load_system(machine))


def texts_of(profile: Profile, advice: Advice, folder: Any) -> dict[str, str]:
    """Screen, advice, report and table, by name, each on one line."""
    path = folder / "profile.yaml"
    profile.save(path)
    texts = {
        "screen": profile.summary(),
        "advice": advice_text(advice),
        "report": vani.report(path, format="txt"),
        "page": vani.report(path, format="markdown").replace("\\", ""),
    }
    return {name: " ".join(text.split()) for name, text in texts.items()}


def check_story(profile: Profile, advice: Advice, texts: dict[str, str]) -> None:
    """Check that all texts have the same verdict and cause, and no impossible figure."""
    verdict = profile.verdict
    assert advice.verdict.model_copy(update={"remedy": None}) == verdict.model_copy(update={"remedy": None})
    sentence = " ".join(verdict.sentence.split())
    for name, text in texts.items():
        assert sentence.removesuffix(".") in text, name
        if verdict.cause is not None:
            assert " ".join(verdict.cause.sentence.split()).removesuffix(".") in text, name
        assert impossible_figures(text) == [], name
    if verdict.matters == "open" or verdict.is_lower_bound:
        for name in ("screen", "advice"):
            assert [words for words in ALL_CLEAR if words in texts[name]] == [], name
        assert advice.recommendations == [] or advice.recommendations[0].expected is None
    if verdict.matters == "open":
        assert (verdict.share, verdict.share_slowest, verdict.share_calls) in (
            (None, None, None),
            (profile.workflow.io_time_share, profile.workflow.io_time_share_slowest, verdict.share_calls),
        )
        assert verdict.why
    check_gains(profile, advice)
    check_evidence(profile, advice)
    check_silence(profile, advice)


def impossible_figures(text: str) -> list[str]:
    """Shares above 100 %, factors above 100, zero rates."""
    shares = [share for share in re.findall(r"([\d,.]+(?:e\+\d+)?) %", text) if float(share.replace(",", "").strip(".") or 0) > 100]
    factors = [factor for factor in re.findall(r"([\d.]+(?:e\+\d+)?) times as fast", text) if float(factor) > 100]
    return shares + factors + re.findall(r"\bat 0 B/s", text)


def check_gains(profile: Profile, advice: Advice) -> None:
    """Check that seconds affected by several rules count once: their total is within the run's I/O time."""
    bound = advice.recommendations[0].expected if advice.recommendations else None
    if bound is None or advice.recommendations[0].rule != "MAT001":
        return
    most = bound.before - bound.after
    gains = [gain for entry in advice.recommendations[1:] if (gain := entry.gain) is not None]
    together = sum(gain.before - gain.after for gain in gains if gain.before is not None and gain.after is not None)
    assert together <= most * (1 + 1e-6) + 1e-9
    assert most <= (profile.workflow.runtime_s or 0.0) * (1 + 1e-9)


def check_evidence(profile: Profile, advice: Advice) -> None:
    """Check that evidence agrees with the profile."""
    tree = profile.model_dump(by_alias=True)
    for entry in advice.recommendations:
        for item in entry.evidence:
            if item.attribute.startswith("system.") or "*" in item.attribute or "[]" in item.attribute:
                continue
            for found in values_at(tree, item.attribute):
                wanted = item.value if not isinstance(item.value, float) else pytest.approx(item.value, rel=1e-6)
                assert found == wanted, f"{entry.rule}: {item.attribute}"


def values_at(tree: Any, path: str) -> Iterator[Any]:
    """The value at `files[0].io.bytes.read`; nothing if the path is not in the document."""
    for key, index in re.findall(r"([A-Za-z_0-9-]+)|\[(\d+)\]", path):
        if key and isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif index and isinstance(tree, list) and int(index) < len(tree):
            tree = tree[int(index)]
        else:
            return
    yield tree


def check_silence(profile: Profile, advice: Advice) -> None:
    """Check that reasons for missing advice do not contradict the profile."""
    for entry in advice.no_recommendation:
        assert "flushes are few" not in entry.why and "nothing is flushed" not in entry.why
        if entry.rule == "POS010" and "is flushed" in entry.why:
            assert not any(file.io.ops.sync and file.io.ops.write for file in profile.files)
