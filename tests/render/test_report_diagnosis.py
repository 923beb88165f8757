"""Behaviour of the program, in each form of the report."""

from __future__ import annotations

import pytest
from report_inputs import HOSTILE, golden, inputs_of, judged

from vani.render.report.markdown import to_markdown as markdown
from vani.render.report.page import to_html as page
from vani.render.report.text import to_text as text
from vani.schema.advice import Evidence, Observation, Target

FORMS = [page, markdown, text]
TITLE = "Behaviour of the program"


def shown_by(render, observations):
    return render(inputs_of(golden(), judged().model_copy(update={"diagnosis": observations})))


@pytest.mark.parametrize("render", FORMS)
def test_each_pattern_is_a_row_with_its_share(render):
    seen = Observation(
        pattern="stat_storm", target=Target(kind="job"), share=0.37, rules=["FLD002"],
        evidence=[Evidence(attribute="workflow.io.metadata_kinds.stat.count", value=17940)],
    )  # fmt: skip
    shown = shown_by(render, [seen])
    assert TITLE in shown
    assert "stat storm" in shown
    assert "37 %" in shown
    assert "FLD002" in shown


@pytest.mark.parametrize("render", FORMS)
@pytest.mark.parametrize("none", [[], None])
def test_table_is_omitted_without_a_pattern(render, none):
    assert TITLE not in shown_by(render, none)


@pytest.mark.parametrize("render", FORMS)
def test_hostile_names_are_text(render):
    target = Target(kind="file", path=HOSTILE)
    seen = Observation(pattern="shared_file", target=target, share=None, rules=[], evidence=[])
    shown = shown_by(render, [seen])
    assert "\x1b" not in shown
    if render is not text:
        assert "<script>alert(1)" not in shown
