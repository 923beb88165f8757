"""Recommendations as a report shows them, with every text safe and of bounded length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vani.render.report.tables import Limits, clip
from vani.render.wording import expected_gain, how_sure, target
from vani.schema.advice import Advice, Evidence, Recommendation, Setting
from vani.units import format_bytes, format_seconds, format_share


@dataclass(frozen=True)
class SettingChange:
    """A setting's current and recommended values; empty if unknown."""

    name: str
    now: str
    then: str


@dataclass(frozen=True)
class Proof:
    """A number behind a recommendation; `meaning` is the number with its unit, or empty."""

    attribute: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Item:
    """One recommendation."""

    number: int
    rule: str
    name: str
    title: str
    """The rule's finding without a full stop, or the rule's name if the catalogue lacks it."""
    severity: str
    sure: str
    target: str
    app: str
    """App to which the target belongs; empty if the target is the app itself, or none is named."""
    reason: str
    gain: str
    """Expected gain with its range, or the reason why there is none."""
    has_gain: bool
    method: str
    lines: tuple[str, ...]
    """Lines to paste."""
    left_lines: int
    rest: str
    """Where to find omitted lines and numbers, as the end of a sentence."""
    settings: tuple[SettingChange, ...]
    evidence: tuple[Proof, ...]
    left_evidence: int
    sources: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Its anchor on a page."""
        return f"advice-{self.number}"


@dataclass(frozen=True)
class Silent:
    """A rule without a recommendation, and the reason."""

    rule: str
    name: str
    why: str


def item(
    number: int,
    recommendation: Recommendation,
    limits: Limits,
    findings: Mapping[str, str] = MappingProxyType({}),
    rest: str = "",
) -> Item:
    """Convert a recommendation for a report.

    Parameters
    ----------
    number
        Its position, from 1.
    findings
        The findings of rules, by id.
    rest
        See `Item`.
    """
    target_ = recommendation.target
    lines = [line for line in recommendation.apply[: limits.lines] if len(line) <= limits.line]
    gain = expected_gain(recommendation)
    return Item(
        number=number,
        rule=clip(recommendation.rule, 40),
        name=clip(recommendation.name, 80),
        title=clip(findings.get(recommendation.rule, "").rstrip(".") or recommendation.name, 160),
        severity=recommendation.severity,
        sure=how_sure(recommendation.confidence),
        target=clip(target(recommendation), limits.path),
        app=clip(target_.app, 40) if target_.app and target_.path else "",
        reason=clip(recommendation.reason, limits.prose),
        gain=clip(gain, limits.prose) if gain else "not estimated",
        has_gain=bool(gain),
        method="" if recommendation.gain is None else clip(recommendation.gain.method, limits.prose),
        # A control character in a line to paste is shown, but never pasted.
        lines=tuple(clip(line, limits.line) for line in lines),
        left_lines=len(recommendation.apply) - len(lines),
        rest=rest,
        settings=_settings(recommendation.current, recommendation.recommended, limits),
        evidence=tuple(_proof(proof, limits) for proof in recommendation.evidence[: limits.evidence]),
        left_evidence=max(0, len(recommendation.evidence) - limits.evidence),
        sources=tuple(clip(source, limits.prose) for source in recommendation.source[:10]),
    )


def silent(advice: Advice, names: Mapping[str, str], limits: Limits) -> tuple[Silent, ...]:
    """Rules without any recommendation; `names` are the names of rules by id."""
    speaking = {recommendation.rule for recommendation in advice.recommendations}
    return tuple(
        Silent(clip(entry.rule, 40), clip(names.get(entry.rule, ""), 80), clip(entry.why, limits.prose))
        for entry in advice.no_recommendation[: 2 * limits.rows]
        if entry.rule not in speaking
    )


def _settings(
    now: Mapping[str, Setting], then: Mapping[str, Setting], limits: Limits
) -> tuple[SettingChange, ...]:
    keys = list(dict.fromkeys([*now, *then]))[:20]
    return tuple(
        SettingChange(clip(key.replace("_", " "), 60), _value(key, now, limits), _value(key, then, limits))
        for key in keys
    )


def _value(key: str, settings: Mapping[str, Setting], limits: Limits) -> str:
    if key not in settings:
        return ""
    value = settings[key]
    return _unit(key, value) or clip(_plain(value), limits.path)


def _proof(proof: Evidence, limits: Limits) -> Proof:
    return Proof(
        clip(proof.attribute, limits.path),
        clip(_plain(proof.value), limits.path),
        _unit(proof.attribute, proof.value),
    )


def _plain(value: Setting) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list):
        return ", ".join(_plain(entry) for entry in value[:20]) + (", …" if len(value) > 20 else "")
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(entry)}" for key, entry in list(value.items())[:20])
    return str(value)


def _unit(attribute: str, value: Setting) -> str:
    """A number with the unit of its attribute; empty if it has none, or is clear without one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    parts = attribute.lower().replace("[", ".").split(".")
    last = parts[-1]
    if last.endswith("_s") or any(part in ("time_s", "busy_s") for part in parts):
        return format_seconds(value)
    if last.endswith("share") or "share" in last.split("_") or "access_pattern" in parts:
        return format_share(value)
    sized = {"bytes", "footprint", "transfer_size", "past_end", "granularity"}
    if last.endswith(("bytes", "_size", "capacity")) or last == "size" or sized & set(parts):
        return format_bytes(value) if abs(value) >= 1000 else ""
    return ""
