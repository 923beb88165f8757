"""The page as a file: self-contained, bounded, safe, reproducible, and readable without a browser's help."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from report_inputs import HOSTILE, Page, golden, hostile, inputs_of, judged, with_files

import vani
from vani.render.answers import numbers_of
from vani.render.report.glossary import GLOSSARY, marked
from vani.render.report.page import MAX_BYTES, json_in_html
from vani.render.report.page import to_html as page
from vani.schema.advice import Expected

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


@cache
def html(name="v3-cm1like-16r"):
    return page(inputs_of(golden(name), judged(name)))


@cache
def hostile_html():
    return page(inputs_of(*hostile(50)))


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


# --- one file -----------------------------------------------------------------------------------------


def test_the_page_names_no_place_on_a_network():
    tags = Page(html()).elements
    places = [value for _, attrs in tags for key, value in attrs.items() if key in ("src", "href", "action", "data", "poster")]
    assert [place for place in places if not place.startswith("#")] == []
    assert not re.search(r"@import|url\(", re.search(r"<style>(.*?)</style>", html(), re.DOTALL)[1])
    assert "sourceMappingURL" not in html()


def test_policy_allows_only_these_scripts():
    text = html()
    policy = Page(text).all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = [f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts]
    assert len(scripts) == 4
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src ([^;]+);", policy)[1].split() == digests
    assert "unsafe-eval" not in policy


def test_the_same_inputs_give_the_same_bytes():
    assert page(inputs_of(golden(), judged())) == html()


def test_elements_are_closed_in_order():
    for text in (html(), hostile_html()):
        found = Page(text)
        assert found.wrong == []
        assert found.open == []


# --- bounded -------------------------------------------------------------------------------------------


def letters(number):
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


@pytest.mark.parametrize("count", [5_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_page_of_many_long_names_stays_below_two_megabytes(count):
    # All names differ completely, so that nothing can be merged; every character takes five or more in HTML.
    prefix = "/scratch/" + "<&'\"\u202e" * 60
    file = golden().files[0]
    files = [file.model_copy(update={"path": f"{prefix}/{letters(i)}.{letters(i)}"}) for i in range(count)]
    text = page(inputs_of(with_files(files)))
    assert len(text.encode()) <= MAX_BYTES
    assert "rows of the file table with less I/O time than those shown." in Page(text).text()


@pytest.mark.slow
def test_a_page_of_the_longest_names_everywhere_is_still_small():
    profile, advice = hostile(2000)
    rows = [one.model_copy(update={"rule": f"TST{i:03}"}) for i in range(200) for one in advice.recommendations]
    many = advice.model_copy(update={"recommendations": rows})
    phases = [phase.model_copy(update={"index": i}) for phase in profile.phases for i in range(5000)]
    apps = [app.model_copy(update={"name": app.name * 50 + letters(i)}) for app in profile.apps for i in range(500)]
    text = page(inputs_of(profile.model_copy(update={"phases": phases, "apps": apps}), many))
    assert len(text.encode()) <= MAX_BYTES
    assert "further recommendations: <code>vani advise</code> writes all." in text


def test_line_to_paste_is_complete_or_absent():
    advice = judged()
    first = advice.recommendations[1].model_copy(update={"apply": ["echo short", "echo " + "x" * 100_000], "severity": "high"})
    text = page(inputs_of(golden(), advice.model_copy(update={"recommendations": [first]})))
    assert re.search(r'<code id="lines-1">echo short\n</code>', text)
    assert "1 more line: <code>vani advise</code> writes all." in text
    inputs = inputs_of(golden(), advice.model_copy(update={"recommendations": [first]}))
    assert "1 more line: see mine &amp; yours.yaml." in page(replace(inputs, advice_file="mine & yours.yaml"))


# --- safe ----------------------------------------------------------------------------------------------


def test_names_cannot_become_elements():
    made = Page(hostile_html())
    assert made.all("img") == []
    assert len(made.all("script")) == 5
    assert [attrs for _, attrs in made.elements if any(key.startswith("on") for key in attrs)] == []


def test_control_characters_and_reversed_text_reach_no_page():
    assert [c for c in hostile_html() if not c.isprintable() and c != "\n"] == []


def test_a_hostile_name_is_still_shown():
    assert "</script><script>alert(1)" in Page(hostile_html()).text()


def test_data_for_scripts_cannot_end_them():
    value = {HOSTILE: [HOSTILE, "<!--", 1.5, None]}
    text = json_in_html(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()
    assert json.loads(text) == value


def test_the_plots_get_no_control_characters():
    def texts(value):
        if isinstance(value, dict):
            yield from value
            value = list(value.values())
        if isinstance(value, list):
            for entry in value:
                yield from texts(entry)
        elif isinstance(value, str):
            yield value

    found = [text for text in texts(data_of(hostile_html())["specs"]) if not text.replace("\n", "").isprintable()]
    assert found == []


# --- first screen -------------------------------------------------------------------------------------


def test_first_section_states_run_share_and_actions():
    summary = html().partition('id="summary"')[2].partition("</section>")[0]
    words = Page("<section " + summary).text()
    profile = golden()
    assert profile.apps[0].name in words
    for fact in ("Processes16", "Run time31.5 s", "31.5 MB written", "cm1out"):
        assert fact in words
    assert "storage is not what this run waits for" in words
    assert "Nothing needs to be done" in words


def test_figures_name_their_key_in_the_profile():
    summary = html().partition('id="summary"')[2].partition("</section>")[0]
    keys = re.findall(r'<(?:dd|h2|p)[^>]* title="([a-z_.]+)"', summary)
    assert {"verdict.sentence", "verdict.cause", "workflow.runtime_s", "workflow.processes"} <= set(keys)
    for key in keys:
        value = golden()
        for name in key.split("."):
            value = getattr(value, name)
        assert value is not None, key


def test_the_three_worst_findings_come_with_lines_severity_and_gain():
    advice = judged()
    severities = ["high", "high", "medium", "low"]
    gain = Expected(metric="io_time_s", before=4.0, after=1.0, speedup=4.0, low=2.0, high=6.44, method="m")
    found = [
        advice.recommendations[1].model_copy(update={"severity": s, "rule": f"TST{i}", "expected": gain})
        for i, s in enumerate(severities)
    ]
    text = page(inputs_of(golden(), advice.model_copy(update={"recommendations": [advice.recommendations[0], *found]})))
    summary = text.partition('id="summary"')[2].partition("</section>")[0]
    assert "What to do" in summary
    assert re.findall(r'class="badge (\w+)"', summary) == ["high", "high", "medium"]
    for number, one in enumerate(found[:3], 1):
        shown = re.search(rf'<code id="lines-{number}">(.*?)</code>', summary, re.DOTALL)[1]
        assert shown.count("\n") == len(one.apply)
    assert len(re.findall(r"<p><strong>", summary)) == 3
    assert f"{gain.speedup:.3g} times as fast ({gain.low:.3g} to {gain.high:.3g})" in summary


def test_recommendation_is_headed_by_the_finding_of_its_rule():
    advice = judged()
    first = advice.recommendations[1].model_copy(update={"severity": "high"})
    inputs = replace(
        inputs_of(golden(), advice.model_copy(update={"recommendations": [first]})),
        rule_findings={first.rule: "Files are opened <again>."},
    )
    text = page(inputs)
    assert text.count(">Files are opened &lt;again&gt;</a></h3>") == 1
    assert ">1. Files are opened &lt;again&gt;</h3>" in text
    assert f'<span class="rule">{first.rule} {first.name}</span>' in text
    # A rule missing from the catalogue is shown by name.
    unknown = page(replace(inputs, rule_findings={}))
    assert f">{first.name}</a></h3>" in unknown


def test_lines_appear_once_on_the_page():
    ids = re.findall(r' id="([^"]+)"', html())
    assert sorted(ids) == sorted(set(ids))


# --- the rest --------------------------------------------------------------------------------------------


def test_every_rule_is_on_the_page():
    words = Page(html()).text()
    advice = judged()
    for one in [*advice.recommendations[1:], *advice.no_recommendation]:
        assert one.rule in words
    assert all(" ".join(one.reason.split()) in words for one in advice.recommendations[1:])


def test_evidence_is_in_words_without_keys_of_the_profile():
    words = Page(html()).text()
    for one in judged().recommendations:
        assert all(number in words for number in numbers_of(one))
        assert not any(proof.attribute in words for proof in one.evidence if "[" in proof.attribute)


def test_every_unknown_is_on_the_page_with_its_reason():
    words = Page(html()).text()
    for name in ("job.nodes", "storage.shared.type", "workflow.gpus_used_per_node"):
        assert name in words
    assert "inside the job and pass job.yaml with --job" in words


def test_page_without_a_store_explains_how_to_get_one():
    text = page(inputs_of(golden(), judged(), heat="no store of v3-cm1like-16r is at hand: name its folder with --store"))
    words = Page(text).text()
    assert "No plots over time: no store of v3-cm1like-16r is at hand: name its folder with --store." in words
    assert words.lower().count("no store of v3-cm1like-16r") == 1
    assert "layers" in data_of(text)["specs"]


def test_a_profile_without_times_makes_a_page():
    profile = golden()
    none = dict.fromkeys(("read", "write", "metadata", "total"))

    def timeless(io):
        return io.model_copy(update={"time_s": io.time_s.model_copy(update=none), "busy_s": io.busy_s.model_copy(update=none), "time_share": None})

    workflow = profile.workflow.model_copy(update={"runtime_s": None, "io": timeless(profile.workflow.io), "io_time_share": None, "app_dependencies": None})
    apps = [app.model_copy(update={"runtime_s": None, "io": timeless(app.io), "balance": None, "process_dependencies": None, "io_time_share": None}) for app in profile.apps]
    files = [file.model_copy(update={"io": timeless(file.io), "role": None, "format": None}) for file in profile.files]
    layers = [layer.model_copy(update={"time_s": None, "files": None}) for layer in profile.interfaces]
    made = profile.model_copy(update={"workflow": workflow, "apps": apps, "files": files, "interfaces": layers, "phases": None})
    words = Page(page(inputs_of(made))).text()
    assert "Phases are not known" in words
    assert "Run timeunknown" in words


def test_worst_rank_is_shown_next_to_the_mean():
    balance = golden().apps[0].balance
    words = Page(html()).text()
    assert f"rank {balance.slowest_rank}" in words
    table = html().partition('id="table-balance"')[2].partition("</table>")[0]
    assert f'data-value="{balance.slowest_io_time_s:.10g}"' in table
    assert f'data-value="{balance.mean_io_time_s:.10g}"' in table


# --- for everybody ---------------------------------------------------------------------------------------


def test_headings_descend_one_level_at_a_time():
    levels = [int(tag[1]) for tag, _ in Page(html()).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_page_has_landmarks_a_skip_link_and_a_language():
    made = Page(html())
    assert made.all("html")[0]["lang"] == "en"
    for tag in ("header", "main", "footer"):
        assert len(made.all(tag)) == 1
    assert made.all("a")[0]["href"] == "#main"
    assert all(attrs.get("aria-labelledby") for attrs in made.all("section"))


def test_landmarks_have_names_of_their_own():
    found = Page(html())
    regions = [attrs["aria-label"] for tag, attrs in found.elements if attrs.get("role") == "region"]
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", html())
    assert len(regions) > 8
    assert sorted(regions + headings) == sorted({*regions, *headings})


def test_every_table_has_a_caption_and_headers_with_scope():
    # The libraries create their own tables.
    shown = html().partition("<body>")[2].partition("<script")[0]
    for table in re.findall(r"<table.*?</table>", shown, re.DOTALL):
        assert "<caption" in table
        made = Page(table)
        assert made.all("th")
        assert all(attrs.get("scope") in ("col", "row") for attrs in made.all("th"))


def test_references_inside_the_page_lead_somewhere():
    made = Page(html())
    ids = {attrs["id"] for _, attrs in made.elements if "id" in attrs}
    wanted = {attrs["href"][1:] for attrs in made.all("a")}
    for _, attrs in made.elements:
        wanted |= {name for key in ("aria-labelledby", "aria-describedby", "for") for name in (attrs.get(key) or "").split()}
    assert wanted <= ids


def test_every_plot_has_its_words_and_its_numbers():
    text = html()
    for kind in data_of(text)["specs"]:
        figure = re.search(rf'<figure[^>]*data-plot="{kind}".*?</figure>', text, re.DOTALL)[0]
        made = Page(figure)
        image = made.all("div", role="img")[0]
        assert len(image["aria-label"]) > 40
        assert len(re.findall("<tr>", figure)) >= 2


def test_term_is_explained_at_its_first_use():
    pieces = [(words, term.id) for words, term in marked("Stripe count and stripe size; the stripe count of /a/stripe") if term]
    assert pieces == [("Stripe count", "stripe-count"), ("stripe size", "stripe-size")]


def test_terms_are_distinct_and_explained():
    assert len({term.id for term in GLOSSARY}) == len(GLOSSARY)
    phrases = [phrase.lower() for term in GLOSSARY for phrase in term.phrases]
    assert len(phrases) == len(set(phrases))
    assert all(len(term.meaning) > 20 for term in GLOSSARY)
    for wanted in ("consecutive", "stripe count", "burst buffer", "transfer size", "collective buffering", "provenance"):
        assert wanted in phrases


def test_quick_profile_is_not_an_all_clear(tmp_path):
    profile = vani.profile(TRACES / "v3-cm1like-16r", quick=True)
    profile.save(tmp_path / "quick.yaml")
    text = vani.report(tmp_path / "quick.yaml", format="txt")
    assert "Profile it without --quick for times, phases and advice." in text and "Nothing needs to be done" not in text
    assert "I/O calls were counted and not timed: the verdict is open" in text
    assert "most bytes first" in text
