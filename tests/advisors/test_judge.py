"""Behaviour of all rules: null inputs, faults, gains in seconds, severity, contradictions, order, digests."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from builders import profile, shared, system
from hypothesis import given
from hypothesis import strategies as st

from vani.advisors import catalogue
from vani.advisors.commands import comment, quoted_path
from vani.advisors.competing_findings import Judged, resolve, together
from vani.advisors.gains import of_run
from vani.advisors.judge import advise_document, judge
from vani.advisors.matter.io_share import IOShare
from vani.advisors.posix.rank_zero_funnel import RankZeroFunnel
from vani.advisors.rule import Finding, Gain, Perhaps, Rule, Target
from vani.errors import DocumentError, InputError, VaniError
from vani.models.io_time import io_time
from vani.render.screen import to_text as advice_text
from vani.render.wording import expected_gain
from vani.schema.advice import Advice, ProfileRef, SystemRef
from vani.schema.document import dumps, loads
from vani.units import GiB, MiB, lfs_size

BUSY = shared("/lustre/out", written=20 * GiB, time_s=400, busy_s=50)
READ = shared("/lustre/in", read=8 * MiB, footprint_read=MiB, time_s=80, busy_s=10)


def advise(a_profile, a_system=None, **options) -> Advice:
    return judge(
        a_profile,
        a_system or system(),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        **options,
    )


class Plain(Rule):
    """A rule for tests."""

    id = "TST001"
    name = "plain"
    family = "test"
    sources = ("this file",)
    settles = "layout"
    least = 3
    share = 0.5

    finding = Finding(
        target=Target("job"),
        reason="because",
        confidence=1.0,
        touched_s=1.0,
        recommended={"stripe_count": 2},
        current={},
        evidence=(),
    )

    def check(self, profile, system):
        return [self.finding]


@pytest.fixture
def catalogue_of(monkeypatch):
    def only(*found):
        monkeypatch.setattr(catalogue, "rules", lambda: found)

    return only


def test_every_rule_is_in_one_of_the_lists():
    advice = advise(profile([BUSY, READ]))
    named = {one.rule for one in (*advice.recommendations, *advice.no_recommendation)}
    assert named == {rule.id for rule in catalogue.rules()}


def test_whether_io_matters_comes_first_then_the_most_seconds():
    advice = advise(profile([READ, BUSY], nodes=4))
    assert [one.rule for one in advice.recommendations] == ["MAT001", "POS001", "LUS002"]


def test_the_verdict_names_the_first_recommendation_as_its_remedy():
    advice = advise(profile([BUSY, READ], slowest_s=50, busy_s=60))
    first = advice.recommendations[1]
    assert advice.verdict.remedy == f"{first.name} ({first.rule})"
    assert advise(profile([BUSY, READ], slowest_s=1, busy_s=1)).verdict.remedy == "nothing to do for storage"


def test_unimportant_io_lowers_severities_without_hiding_any():
    matters = advise(profile([BUSY, READ], slowest_s=50, busy_s=60))
    hardly = advise(profile([BUSY, READ], slowest_s=4, busy_s=4))
    assert {one.rule for one in hardly.recommendations} == {one.rule for one in matters.recommendations}
    assert {one.severity for one in hardly.recommendations} == {"info"}
    assert "info" not in {one.severity for one in matters.recommendations}


def test_missing_input_is_named_with_its_remedy(catalogue_of):
    class Needy(Plain):
        needs = ("job.nodes",)

    catalogue_of(Needy)
    silent = advise(profile(provenance={"job.nodes": "no job.yaml was given"})).no_recommendation
    assert silent[0].why.startswith("job.nodes is not known (no job.yaml was given); supply --job job.yaml")


@pytest.mark.parametrize(
    ("files", "is_missing"),
    [([], False), ([shared(size=None)], True), ([shared(size=None), shared("/lustre/b", size=1)], False)],
)
def test_input_from_files_is_missing_if_no_file_has_it(catalogue_of, files, is_missing):
    class Needy(Plain):
        needs = ("files[].size",)

    catalogue_of(Needy)
    assert bool(advise(profile(files)).no_recommendation) is is_missing


def test_unmet_need_gives_its_reason_without_evaluating_the_rule(catalogue_of):
    class Needy(Plain):
        needs = ("files", lambda profile, system: None if system.file_systems else "no file system is known")

        def check(self, profile, system):
            assert system.file_systems
            return super().check(profile, system)

    catalogue_of(Needy)
    (silent,) = advise(profile([BUSY]), system(None)).no_recommendation
    assert (silent.rule, silent.why) == ("TST001", "no file system is known")
    assert not advise(profile([BUSY])).no_recommendation


@pytest.mark.parametrize(("module", "status"), [("vani.advisors.lustre.broken", 3), ("their_rules", 2)])
def test_a_fault_of_a_rule_names_the_rule(catalogue_of, module, status):
    class Broken(Plain):
        __module__ = module

        def check(self, profile, system):
            return 1 / 0

    catalogue_of(Broken)
    with pytest.raises(VaniError, match=r"rule TST001 \(plain\) failed \(ZeroDivisionError") as caught:
        advise(profile())
    assert caught.value.exit_code == status


def test_rule_without_findings_or_reason_is_a_fault(catalogue_of):
    class Mute(Plain):
        def check(self, profile, system):
            return []

    catalogue_of(Mute)
    with pytest.raises(VaniError, match="neither recommends anything nor gives a reason"):
        advise(profile())


times = st.floats(0, 1e6)


@given(
    before=times, after=times, best=times, worst=times, slowest=times, busy=times, calls=times, runtime=times
)
@pytest.mark.parametrize("acts_on", ["file_system", "libraries"])
@pytest.mark.parametrize("metric", ["x", "runtime_s"])
def test_no_gain_exceeds_the_io_time(
    acts_on, metric, before, after, best, worst, slowest, busy, calls, runtime
):
    time = io_time(profile(runtime_s=runtime, slowest_s=slowest, busy_s=busy, calls_s=calls))
    told = Gain(metric, before, after, best, worst, "")
    gain = of_run(replace(Plain.finding, gain=told, touched_s=before, acts_on=acts_on), time)
    most = time.slowest_s if acts_on == "file_system" else time.calls_s
    slack = 1e-9 * (before + 1)
    assert gain.touched_s <= most
    gain = gain.gain
    assert gain.before_s - gain.best_s <= most + slack
    assert 0 <= gain.best_s <= gain.after_s <= min(gain.worst_s, gain.before_s)
    assert gain.before_s <= before
    assert gain.worst_s <= gain.before_s if metric == "runtime_s" else gain.before_s <= most
    assert time.slowest_s <= time.busy_s <= runtime
    assert time.slowest_s <= time.calls_s <= runtime


def test_part_longer_than_the_slowest_process_is_scaled_with_its_factor_kept():
    # Eight processes do I/O for 60 s, one after another, and the slowest of them for 20 s.
    time = io_time(profile(slowest_s=20, busy_s=60))
    gain = of_run(replace(Plain.finding, gain=Gain("x", 60, 30, 15, 60, "")), time).gain
    assert (gain.before_s, gain.after_s, gain.best_s, gain.worst_s) == (20, 10, 5, 20)


def _of(catalogue_of, *gains, acts_on="file_system", **settings):
    """Advice of rules whose recommendations act on these parts, and whether I/O matters."""
    found = [
        type(
            f"R{index}",
            (Plain,),
            {
                "id": f"TST{index:03}", "name": f"r{index}", "settles": "",
                "finding": replace(Plain.finding, gain=gain, acts_on=acts_on, touched_s=gain.before_s),
            },
        )
        for index, gain in enumerate(gains)
    ]  # fmt: skip
    catalogue_of(*found, IOShare)
    return advise(profile(**settings)).recommendations


def won(one):
    return one.gain.before - one.gain.after if one.gain else 0.0


def test_each_recommendation_acts_on_the_rest_of_earlier_ones(catalogue_of):
    half = Gain("x", 50, 25, 10, 50, "half of it")
    matter, *others = _of(catalogue_of, half, half, half, slowest_s=50, busy_s=60)
    # 50 s, then the remaining 25 s, then 12.5 s of that.
    assert [(one.expected.before, won(one)) for one in others] == [(50, 25), (25, 12.5), (12.5, 6.25)]
    assert sum(map(won, others)) <= won(matter)
    assert {one.expected.speedup for one in others} == {2}
    # Each of them alone is worth a quarter of the run.
    assert {one.severity for one in others} == {"high"}
    assert others[1].expected.method == "half of it; of the 25 s that those above leave"


def test_savings_on_other_parts_are_not_reduced(catalogue_of):
    _, first, second = _of(
        catalogue_of, Gain("write_time_s", 30, 3, 3, 15, ""), Gain("read_time_s", 20, 10, 10, 20, ""), slowest_s=50
    )
    assert (won(first), won(second), second.expected.before) == (27, 10, 20)


def test_second_of_two_plans_without_files_starts_from_the_rest_of_the_first(catalogue_of):
    writes, all_calls = Gain("write_time_s", 20, 10, 10, 20, ""), Gain("x", 30, 15, 15, 30, "")
    _, first, second = _of(catalogue_of, writes, writes, slowest_s=50, busy_s=60)
    assert [(one.expected.before, one.expected.after) for one in (first, second)] == [(20, 10), (10, 5)]
    # Writes are a part of all calls, whichever comes first.
    _, first, second = _of(catalogue_of, all_calls, writes, slowest_s=50, busy_s=60)
    assert [(one.expected.before, one.expected.after) for one in (first, second)] == [(30, 15), (10, 5)]
    _, first, second = _of(catalogue_of, writes, replace(all_calls, after_s=21, best_s=21), slowest_s=50, busy_s=60)
    assert (first.expected.before, second.expected.before) == (20, 20)


def test_unmeasurable_gain_is_not_recommended(catalogue_of):
    class Idle(Plain):
        finding = replace(Plain.finding, gain=Gain("x", 50, 49, 25, 50, "a model"))

    catalogue_of(Idle)
    advice = advise(profile(slowest_s=50))
    assert advice.recommendations == []
    assert "gains nothing that can be measured (a model)" in advice.no_recommendation[0].why


@pytest.mark.parametrize(
    ("gain", "direction", "why"),
    [
        ("supply a trace with times", "faster", "supply a trace with times"),
        (Gain("x", 50, 40, 20, 50, "a model"), "perhaps faster", "at most 2.5 times as fast"),
        (Perhaps("its bytes are in memory"), "perhaps faster", "its bytes are in memory"),
        (Gain("x", 50, 0, 0, 25, "a model"), "faster", "it may save 25 s, or up to 50 s of 50 s"),
    ],
)
def test_gain_without_a_number_has_a_direction(catalogue_of, gain, direction, why):
    class Vague(Plain):
        finding = replace(Plain.finding, gain=gain)

    catalogue_of(Vague)
    (one,) = advise(profile(slowest_s=50)).recommendations
    assert one.expected.model_dump() == {"direction": direction, "why_no_number": why}
    assert one.gain is None
    assert expected_gain(one) == f"Expected: {direction}, by an unknown factor: measure it ({why})"


def test_no_gain_is_faster_than_nodes_and_targets_allow(catalogue_of):
    class Bold(Plain):
        finding = replace(Plain.finding, gain=Gain("write_time_s", 50, 1, 0.5, 2, "m"), files=frozenset({"/lustre/out"}))

    catalogue_of(Bold)
    run = profile([shared("/lustre/out", written=10 * 10**9, time_s=400, busy_s=50)], slowest_s=50)
    # 10 GB on two targets of 0.5 GB/s.
    (one,) = advise(run).recommendations
    assert one.expected.after == pytest.approx(10)
    # A trace faster than the description corrects it: nothing faster is known.
    (one,) = advise(run, system(target_rate=50e6)).recommendations
    assert "the writes already reach 200 MB/s" in one.expected.why_no_number


def test_seconds_saved_by_two_settings_count_once(catalogue_of):
    same = frozenset({"/lustre/log"})
    buffered, metadata = Gain("data_time_s", 30, 3, 3, 15, ""), Gain("metadata_time_s", 15, 3, 3, 15, "")
    rules = [
        type(
            f"R{index}",
            (Plain,),
            {
                "id": f"TST{index:03}", "name": f"r{index}", "settles": "",
                "finding": replace(Plain.finding, gain=gain, files=same, touched_s=gain.before_s),
            },
        )
        for index, gain in enumerate((buffered, buffered, metadata))
    ]  # fmt: skip
    catalogue_of(*rules, IOShare)
    others = advise(profile(slowest_s=50, change={"workflow.io.busy_s.metadata": 20.0})).recommendations[1:]
    # 3 s of data remain; metadata is another part of the 50 s.
    first, second, third = others
    assert [(one.expected.before, one.expected.after) for one in (first, third)] == [(30, 3), (15, 3)]
    assert "already save almost all" in second.expected.why_no_number


def test_time_inside_libraries_is_saved_only_by_settings_that_act_on_them(catalogue_of):
    whole = Gain("x", 80, 40, 40, 80, "")
    settings = {"slowest_s": 10, "busy_s": 20, "calls_s": 80}
    assert [won(one) for one in _of(catalogue_of, whole, whole, **settings)[1:]] == [5, 2.5]
    assert [won(one) for one in _of(catalogue_of, whole, whole, acts_on="libraries", **settings)[1:]] == [
        40,
        20,
    ]


@given(
    gains=st.lists(st.tuples(times, st.floats(0, 1), st.booleans()), max_size=8),
    slowest=times, busy=times, calls=times, runtime=times,
)  # fmt: skip
def test_total_savings_do_not_exceed_the_first_line(gains, slowest, busy, calls, runtime):
    run = profile(runtime_s=runtime, slowest_s=slowest, busy_s=busy, calls_s=calls)
    time = io_time(run)
    judged = []
    for before, left, in_libraries in gains:
        gain = Gain("x", before, before * left, before * left, before, "")
        acts_on = "libraries" if in_libraries else "file_system"
        finding = of_run(replace(Plain.finding, gain=gain, acts_on=acts_on), time)
        judged.append(Judged(Plain, finding, finding.gain.seconds))
    won = [one.known_gain.seconds if one.known_gain else 0.0 for one in together(judged, time, run)]
    slack = 1e-9 * (runtime + 1)
    assert sum(won) <= time.calls_s + slack
    of_files = [s for s, one in zip(won, judged, strict=True) if one.finding.acts_on == "file_system"]
    assert sum(of_files) <= time.slowest_s + slack
    assert all(new <= one.seconds + slack for new, one in zip(won, judged, strict=True))


@pytest.mark.parametrize(
    ("runtime", "spent", "severity"),
    [(100, 25, "high"), (100, 24.9, "medium"), (3, 1.0, "high"), (3, 0.99, "low"), (50, 0.4, "info")],
)
def test_severity_is_a_share_of_the_run_and_below_a_second_low_at_most(
    catalogue_of, runtime, spent, severity
):
    gain = Gain("x", spent, 0, 0, 0, "")
    one = _of(catalogue_of, gain, runtime_s=runtime, slowest_s=max(spent, 0.4 * runtime), busy_s=runtime)[1]
    assert one.severity == severity
    assert one.confidence == 1.0


def test_run_too_short_to_judge_halves_confidence(catalogue_of):
    matter, one = _of(catalogue_of, Gain("x", 0.5, 0, 0, 0.5, ""), runtime_s=0.9, slowest_s=0.5, busy_s=0.5)
    assert matter.reason.endswith("with 100 ms of I/O.")
    assert (one.severity, one.confidence) == ("low", 0.5)


@given(
    busy=st.floats(0, 1000),
    slowest=st.floats(0, 1000),
    written=st.integers(0, 1 << 40),
    read=st.integers(0, 1 << 30),
    processes=st.integers(2, 5000),
    targets=st.integers(1, 2000),
)
def test_no_recommendation_promises_more_than_the_io_time(busy, slowest, written, read, processes, targets):
    files = [
        shared("/lustre/out", processes=processes, written=written, time_s=busy * 2, busy_s=busy),
        shared("/lustre/in", processes=processes, read=read * processes, footprint_read=read, busy_s=busy),
    ]
    run = profile(files, processes=processes, runtime_s=1000, slowest_s=min(slowest, busy), busy_s=busy)
    for one in advise(run, system(targets=targets)).recommendations:
        if one.gain is not None:
            assert won(one) <= min(slowest, busy) + 1e-6
            assert one.rule == "MAT001" or one.gain.before <= min(slowest, busy)
        if one.rule == "LUS002":
            assert 1 <= one.recommended["stripe_count"] <= targets
            size = one.recommended["stripe_size"]
            assert size % 65536 == 0
            assert 65536 <= size < 4 * GiB


def _judged(name, seconds, *, settles="layout", recommended=None, files=("/a",), **finding):
    rule = type(name, (Plain,), {"id": name, "name": name.lower(), "settles": settles})
    gain = None if seconds is None else Gain("t", seconds, 0, 0, 0, "")
    changed = replace(
        Plain.finding,
        gain=gain,
        files=frozenset(files),
        recommended=recommended or {"stripe_count": len(name)},
        **finding,
    )
    return Judged(rule, changed, seconds or 0.0)


def test_contradicting_recommendations_keep_the_larger_gain():
    few, many = _judged("A", 1), _judged("BB", 5)
    kept, lost = resolve([few, many])
    assert kept == [many]
    assert lost[0][0] is few
    assert "/a: given up for BB (bb)" in lost[0][1]
    assert "5 s against 1 s" in lost[0][1]


def test_a_file_that_moves_needs_no_stripes():
    stripes, moves = _judged("A", 1), _judged("B", 5, settles="location")
    assert resolve([stripes, moves])[0] == [moves]


@pytest.mark.parametrize(
    "other",
    [
        _judged("BB", 5, files=("/b",)),
        _judged("BB", 5, recommended={"stripe_count": 1}),
        _judged("BB", 5, settles="reading"),
        _judged("BB", 5, settles=""),
    ],
    ids=["other file", "same setting", "other decision", "no decision"],
)
def test_compatible_recommendations_are_kept(other):
    one = _judged("A", 1)
    assert resolve([one, other]) == ([other, one], [])


def test_a_change_comes_before_what_builds_on_it_whatever_their_times(catalogue_of):
    kept_open = _judged("AA1", 1, settles="opening", precedes=frozenset({"request-size"}))
    collected = _judged("BBB1", 5, settles="request-size")
    elsewhere = _judged("CCC1", 9, settles="request-size", files=("/b",))

    def of(judged):
        gain = Gain("io_time_s", 20.0, 20.0 - judged.seconds, 0.0, 20.0, "test", why_no_number="test")
        finding = replace(judged.finding, gain=gain)
        return type(judged.rule.__name__, (judged.rule,), {"check": lambda *_: [finding]})

    catalogue_of(of(kept_open), of(collected), of(elsewhere))
    advice = advise(profile(slowest_s=50))
    assert [item.rule for item in advice.recommendations] == ["CCC1", "AA1", "BBB1"]


def test_sharing_out_the_writes_comes_before_hiding_them():
    change = {
        "apps[0].balance.writing_processes": 1, "apps[0].balance.busiest_rank": 0, "apps[0].balance.busiest_bytes": GiB,
        "apps[0].io.bytes.written": GiB, "apps[0].io.busy_s.write": 20.0,
    }  # fmt: skip
    (found,) = RankZeroFunnel().check(profile([shared("/lustre/out", processes=1, written=GiB, time_s=20)], change=change), system())
    assert "waiting" in found.precedes


def test_what_one_reads_for_all_needs_no_copy_on_the_node():
    inputs = shared("/lustre/in", processes=8, read=8 * 100 * MiB, footprint_read=100 * MiB, transfer=MiB, time_s=160, busy_s=20)
    advice = advise(profile([inputs]), system(node_local="/local"))
    assert "POS001" in [entry.rule for entry in advice.recommendations]
    assert "BB001" not in [entry.rule for entry in advice.recommendations]
    why = next(entry.why for entry in advice.no_recommendation if entry.rule == "BB001")
    assert "the change of POS001 (read-by-all) removes this as well" in why


def test_dropped_recommendation_is_listed_with_its_reason(catalogue_of):
    one, other = _judged("AA1", 1), _judged("BBB1", 5)

    def of(judged):
        return type(judged.rule.__name__, (judged.rule,), {"check": lambda *_: [judged.finding]})

    catalogue_of(of(one), of(other))
    advice = advise(profile(slowest_s=50))
    assert [item.rule for item in advice.recommendations] == ["BBB1"]
    assert [(item.rule, "given up for BBB1" in item.why) for item in advice.no_recommendation] == [
        ("AA1", True)
    ]


def test_attributes_that_python_adds_to_a_class_are_no_thresholds():
    """Since Python 3.13 a class has the number `__firstlineno__`."""
    rule = type("Later", (Plain,), {"__firstlineno__": 7, "enough": 4})
    assert rule.thresholds() == {"least": 3, "share": 0.5, "enough": 4}


def test_thresholds_are_overridden_by_name():
    assert Plain({"least": "4K"}).least == 4096
    assert Plain({"share": 0.25}).share == 0.25
    assert Plain.least == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"leest": 1}, "no threshold 'leest'; did you mean 'least'"),
        ({"least": "many"}, "is 'many'; give a number or a size"),
        ({"least": -1}, "is -1; give a number of 0 or more"),
        ({"share": "50 %"}, "give a number of 0 or more"),
        ({"share": True}, "give a number of 0 or more"),
        ({"share": float("nan")}, "give a number of 0 or more"),
    ],
)
def test_a_wrong_threshold_is_refused(given, says):
    with pytest.raises(InputError, match=says):
        Plain(given)


def test_thresholds_of_an_unknown_rule_are_refused():
    with pytest.raises(InputError, match="which is not a rule"):
        advise(profile(), thresholds={"NOP001": {"x": 1}})


def test_rules_are_selected_by_id_name_family_and_beginning():
    assert [r.id for r in catalogue.pick(["LUS"])] == [r.id for r in catalogue.rules() if r.id[:3] == "LUS"]
    assert [r.id for r in catalogue.pick(["stripe-count,mat001"])] == ["LUS002", "MAT001"]
    assert "POS001" not in [r.id for r in catalogue.pick(None, ["posix"])]
    with pytest.raises(InputError, match="did you mean stripe-count"):
        catalogue.pick(["stripe-cuont"])


def test_a_profile_in_a_file_is_known_by_the_digest_of_its_bytes(tmp_path):
    path = tmp_path / "profile.yaml"
    profile([BUSY]).save(path)
    advice = advise_document(path, system())
    assert advice.profile.path == str(path)
    assert advice.profile.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert advice.system.name == "testbed"
    assert advise_document(profile([BUSY]), system()).profile.sha256 == advice.profile.sha256


def test_advice_without_a_machine_states_that():
    advice = advise_document(profile([shared("/data/out", written=GiB)]))
    assert advice.system.name is None
    assert any("--system NAME" in one.why for one in advice.no_recommendation)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"schema: vani.advice/3\n"])
def test_invalid_profile_is_refused(tmp_path, content):
    path = tmp_path / "profile.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"profile\.yaml"):
        advise_document(path)


def test_advice_survives_being_written_and_read():
    advice = advise(profile([BUSY, READ]), system(node_local="/dev/shm"))
    assert loads(dumps(advice), Advice).recommendations[1].apply == advice.recommendations[1].apply


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/a/b", "/a/b"),
        ("/a b", "'/a b'"),
        ("-rf", "./-rf"),
        ("/a'b", "'/a'\"'\"'b'"),
        ("/a\nb", None),
        ("", None),
    ],
)
def test_a_path_is_one_word_of_sh(path, word):
    assert quoted_path(path) == word


def test_no_text_ends_a_comment():
    assert comment("a\nrm -rf /\x1b[2J") == ["# a", "# rm -rf /?[2J"]


@pytest.mark.parametrize(("size", "text"), [(4 * MiB, "4M"), (65536, "64K"), (3 * GiB, "3G"), (1000, "1000")])
def test_sizes_are_written_as_lfs_reads_them(size, text):
    assert lfs_size(size) == text


def test_file_used_by_several_apps_is_assigned_to_none():
    small = {"transfer": 4096, "time_s": 8, "busy_s": 8}
    both = shared("/lustre/p.fits", read=16 * MiB, apps=["mImgtbl", "ior"], **small)
    own = shared("/lustre/q.fits", read=16 * MiB, apps=["ior"], **small)
    found = {
        one.target.path: one for one in advise(profile([both, own]), select=["POS002"]).recommendations
    }
    assert found["/lustre/p.fits"].target.app is None
    assert "(used by mImgtbl and ior)" in found["/lustre/p.fits"].reason
    assert found["/lustre/q.fits"].target.app == "ior"


some_s = st.floats(0, 4)


@given(
    before=some_s, after=some_s, touched=some_s, runtime=st.floats(0.1, 8), slowest=some_s, busy=some_s,
    calls=st.none() | some_s, known=st.booleans(),
)  # fmt: skip
@pytest.mark.parametrize("acts_on", ["file_system", "libraries"])
@pytest.mark.parametrize("metric", ["x", "runtime_s"])
def test_recommendation_about_less_than_a_second_is_at_most_low(
    acts_on, metric, before, after, touched, runtime, slowest, busy, calls, known
):
    gain = Gain(metric, before, after, after, before, "") if known else None
    finding = replace(Plain.finding, gain=gain, acts_on=acts_on, touched_s=touched)
    rule = type("R", (Plain,), {"finding": finding})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "rules", lambda: (rule, IOShare))
        advice = advise(profile(runtime_s=runtime, slowest_s=slowest, busy_s=busy, calls_s=calls))
    for one in advice.recommendations:
        if one.severity in ("high", "medium"):
            assert runtime >= 1
            assert max(touched, before) >= 1 if one.gain is None else won(one) >= 1 - 1e-6


# Parts that recommendations leave untouched


@pytest.mark.parametrize(
    ("layer", "functions", "kind", "words"),
    [
        ("mpiio", {"MPI_File_write_at_all": 30.0, "MPI_File_open": 2.0}, "exchange", "MPI_File_write_at_all of MPI-IO"),
        # 36 of the 40 s are in file-system calls: independent writes are storage time, collective opens are
        # not.
        ("mpiio", {"MPI_File_write_at": 38.0, "MPI_File_open": 5.0}, "opening", "calls that all processes make"),
        ("hdf5", {"H5Dwrite": 35.0, "H5Fclose": 2.0}, "data", "compression, conversion or copying"),
        ("hdf5", {"H5Dwrite": 2.0, "H5Dcreate2": 35.0}, "metadata", "H5Dcreate2 of HDF5: 8 calls, 35 s of 40 s"),
    ],
)
def test_advice_names_the_largest_part_if_no_recommendation_acts_on_half_of_it(layer, functions, kind, words):
    calls = [{"name": name, "count": 8, "time_s": time} for name, time in functions.items()]
    outside = 4 if "MPI_File_write_at" in functions else 36
    time = {layer: {"total": 40, "outside_file_system": outside, "slowest": 40, "calls": calls}}
    change = {"apps[0].library_time_s": time, "workflow.library_time_s": time}
    advice = advise(profile(slowest_s=4, busy_s=4, calls_s=40, change=change))
    assert advice.remainder.kind == kind
    assert advice.remainder.share == pytest.approx(0.9)
    assert words in advice.remainder.sentence
    assert advice.remainder.sentence.endswith("no setting of storage reduces it.")
    assert advice.remainder.sentence in " ".join(advice_text(advice).split())


def test_file_system_calls_that_no_recommendation_is_about_are_named():
    advice = advise(profile([BUSY], slowest_s=50), select=["MAT001"])
    assert advice.remainder.kind == "file_system"
    assert advice.remainder.sentence == "No rule has a setting for the 50 s in I/O calls."


def test_sentence_is_omitted_if_io_is_unimportant_or_half_covered():
    assert advise(profile(slowest_s=1, busy_s=1)).remainder is None
    assert "remainder" not in dumps(advise(profile(slowest_s=1, busy_s=1)))
    small = shared("/lustre/out", written=GiB, transfer=1024, time_s=400, busy_s=50)
    advice = advise(profile([small], slowest_s=50, busy_s=50))
    assert any(entry.severity != "info" for entry in advice.recommendations[1:])
    assert advice.remainder is None
