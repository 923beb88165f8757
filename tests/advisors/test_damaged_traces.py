"""Advice on a damaged trace states that first, is less certain, and gives no all-clear."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from builders import profile, shared, system
from rich.console import Console

from vani.advisors.catalogue import page_text, rules
from vani.advisors.judge import advise_document
from vani.cli.profile import profile as profiled
from vani.render.advice import to_markdown
from vani.render.code_hosts import advice_to_sarif
from vani.render.screen import print_advice
from vani.schema.advice import Advice
from vani.schema.damage import damage
from vani.schema.document import dumps, loads
from vani.units import GiB

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
LOST = {
    "traces[0].complete": False,
    "traces[0].problems": ["rank 3: left out, 3.cst: damaged", "rank 4: left out, 4.cst: damaged"],
}


def advice_of(lost=LOST, **settings) -> Advice:
    files = [shared(written=GiB, time_s=8, busy_s=1)]
    return advise_document(profile(files, functions={"write": 8}, change=lost, **settings), system())


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """The profile of a real trace with truncated time stamps: three of eight ranks are lost, and one in part."""
    folder = tmp_path_factory.mktemp("cut")
    trace = Path(shutil.copytree(TRACES / "v3-ckpt-then-restart-8r", folder / "run"))
    stamps = trace / "recorder.ts"
    content = stamps.read_bytes()
    stamps.write_bytes(content[: int(len(content) * 0.6)])
    return profiled(trace, store=folder / "store")


def test_the_loss_of_a_real_trace_is_the_first_line(cut):
    advice = advise_document(cut)
    assert advice.damage == damage(cut)
    text = StringIO()
    print_advice(advice, cut, Console(file=text, width=400, color_system=None))
    assert (
        text.getvalue()
        .splitlines()[0]
        .startswith("Damaged trace: 3 of 8 ranks are lost and 1 in part, 44 % of the calls")
    )
    assert "too short to judge" in text.getvalue().splitlines()[1]


def test_missing_attributes_lower_each_confidence(cut):
    whole = cut.model_copy(
        update={"traces": [cut.traces[0].model_copy(update={"complete": True, "problems": []})]}
    )
    before = {(one.rule, one.target.path): one.confidence for one in advise_document(whole).recommendations}
    after = {(one.rule, one.target.path): one.confidence for one in advise_document(cut).recommendations}
    assert before.keys() == after.keys()
    # 213 of 377 calls remain.
    assert all(after[key] == pytest.approx(before[key] * 213 / 377, abs=0.006) for key in before)


def test_damaged_trace_never_shows_that_io_does_not_matter():
    damaged, whole = advice_of(slowest_s=1, busy_s=1), advice_of({}, slowest_s=1, busy_s=1)
    assert whole.recommendations[0].reason.startswith("I/O takes 1 % of the run in the slowest process (rank 3): storage is not")
    assert damaged.recommendations[0].reason.endswith(": the lost part may change that. Trace it again.")
    # 6 of 8 ranks remain; confidence is not also lowered for I/O that hardly matters.
    assert damaged.recommendations[0].confidence == pytest.approx(
        0.75 * 0.5, abs=0.006
    )
    assert damaged.recommendations[0].severity == "low"
    assert {one.severity for one in whole.recommendations} == {"info"}


def test_speedup_of_the_run_is_omitted_if_no_time_is_left():
    assert advice_of(slowest_s=0, busy_s=0).recommendations[0].reason == (
        "I/O takes 0 % of the run in the slowest process (rank 3): the lost part may change that. Trace it again."
    )


def test_every_format_states_the_damage():
    advice = advice_of()
    said = (
        "Damaged trace: 2 of 8 ranks are lost (ior, ranks 3, 4: 3.cst: damaged); all figures are of the rest."
    )
    assert advice.damage == said
    assert loads(dumps(advice), Advice).damage == said
    assert (
        to_markdown(advice).splitlines()[2].startswith(r"**Damaged trace\: 2 of 8 ranks are lost")
    )
    (run,) = json.loads(
        advice_to_sarif(advice, version="1", pages={rule.id: page_text(rule) for rule in rules()})
    )["runs"]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == said
    assert run["properties"]["damage"] == said


def test_complete_trace_has_no_damage_note_in_any_format():
    advice = advice_of({})
    assert advice.damage is None
    assert "Damaged" not in dumps(advice) + to_markdown(advice)


def test_name_in_a_trace_is_not_markup():
    lost = LOST | {"traces[0].problems": ["rank 3: left out, **[x](y)** `z`\n"]}
    line = to_markdown(advice_of(lost)).splitlines()[2]
    assert r"\*\*\[x\]" in line
