"""An incomplete trace does not pass as a complete one, nor do runs of several sizes pass as noise."""

from __future__ import annotations

import pytest
from gate_cases import changed, policy, verdict

from vani.errors import InputError
from vani.render.code_hosts import summary
from vani.render.formats import CHECK

BUDGET = "[[check.budget]]\nexpect = 'workflow.io.ops.metadata <= 100'\n"
DAMAGED = {
    "traces__0__complete": False,
    "traces__0__problems": ["rank 3: 261 of 266 calls left out", "rank 4: gone"],
}
LEFT_OUT = {
    "provenance": {
        "traces[/scratch/job7/b]": "left out: is what an aborted run leaves",
        "traces.records": "x",
    }
}


def failed(tmp_path, profile, text=BUDGET, **options):
    check = verdict(policy(tmp_path, text), profile, **options)
    return [
        (one.level, one.id, one.message) for one in check.judgements if one.status == "fail"
    ], check.verdict


def test_complete_trace_is_not_mentioned(tmp_path):
    assert failed(tmp_path, changed()) == ([], "pass")
    # Unknown for a quick profile.
    assert failed(tmp_path, changed(traces__0__complete=None)) == ([], "pass")


def test_a_damaged_trace_is_a_warning(tmp_path):
    told = (
        "warning",
        "traces: v3-cm1like-16r",
        "v3-cm1like-16r is damaged, so figures may be too small: rank 3: 261 of 266 calls left out (and 1 more)",
    )
    assert failed(tmp_path, changed(**DAMAGED)) == ([told], "pass with warnings")
    assert failed(tmp_path, changed(**DAMAGED), fail_on="warning") == ([told], "fail")


def test_quick_profile_of_a_damaged_trace_warns_too(tmp_path):
    found, _ = failed(tmp_path, changed(**DAMAGED | {"traces__0__complete": None}))
    assert [level for level, *_ in found] == ["warning"]


SAID = "Damaged trace: 1 of 16 ranks is lost in part, 3.1 % of the calls"


@pytest.mark.parametrize("kind", ["text", "github", "junit", "sarif"])
def test_every_format_states_the_losses(tmp_path, kind):
    check = verdict(policy(tmp_path, BUDGET), changed(**DAMAGED))
    assert check.damage.startswith(SAID)
    text = summary(check) if kind == "github" else CHECK.render(kind, check, version="1")
    # Markdown escapes the colon.
    assert SAID.partition(": ")[2] in text
    if kind == "text":
        first, second = text.splitlines()[0], text.partition("are of the rest.\n")[2]
        assert first.startswith(SAID[:40])
        assert second.startswith("pass with warnings: 1 warning")
    whole = verdict(policy(tmp_path, BUDGET), changed())
    assert whole.damage is None
    text = summary(whole) if kind == "github" else CHECK.render(kind, whole, version="1")
    assert "Damaged" not in text


def test_unreadable_trace_is_a_warning_whatever_the_job_name(tmp_path):
    text = BUDGET + "[check.paths]\nstrip = ['/scratch/job*']\n"
    (found,), _ = failed(tmp_path, changed(**LEFT_OUT), text)
    assert found[:2] == ("warning", "traces: b")
    assert found[2].endswith(
        "/b is not in the profile, so figures may be too small: is what an aborted run leaves"
    )


def test_exception_lets_the_check_pass(tmp_path):
    text = (
        BUDGET + '[[check.except]]\ncheck = "traces"\nuntil = 2026-12-31\nreason = "the node is replaced"\n'
    )
    assert failed(tmp_path, changed(**DAMAGED), text, fail_on="note") == ([], "pass")


def test_it_is_not_a_check_of_the_policy(tmp_path):
    # A damaged trace does not turn an empty policy into a check.
    with pytest.raises(InputError, match="nothing to check"):
        verdict(policy(tmp_path, "[check]\n"), changed(**DAMAGED))


@pytest.mark.parametrize(("sizes", "told"), [((16,), None), ((16, 16), None), ((16, 8, 16), "8, 16")])
def test_runs_of_several_sizes_do_not_form_a_baseline(tmp_path, sizes, told):
    runs = [changed(workflow__processes=size) for size in sizes]
    check = verdict(policy(tmp_path, "[check]\n"), changed(), runs)
    messages = [(one.level, one.message) for one in check.judgements if one.check == "baseline"]
    what = f"the baseline has runs of {told} processes: their differences count as noise"
    assert messages == ([("warning", what)] if told else [])
