"""Budgets, rules and exceptions: the findings, their order, and the verdict."""

from __future__ import annotations

import json
import random
from datetime import date

import pytest
from gate_cases import TODAY, changed, figures, found, policy, put, tree, verdict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples

from vani.errors import DocumentError, InputError
from vani.gate.attribute import parse_attribute, resolve
from vani.gate.checks import RulesAdvice
from vani.gate.matching import Names, find, matches, stripped
from vani.render.check import to_text
from vani.schema.advice import Advice, Evidence, ProfileRef, Recommendation, SystemRef, Target
from vani.schema.document import dumps
from vani.schema.profile import Profile


def budget(expect: str, **more: object) -> str:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    return f"[[check.budget]]\nexpect = '''{expect}'''\n{lines}"


class TestBudgets:
    # The profile: 76 metadata operations, 6 files of which 3 are .dat, 1 app; see tests/golden/v3-cm1like-16r.yaml.
    @pytest.mark.parametrize(
        ("expect", "status", "message"),
        [
            ("workflow.io.ops.metadata <= 76", "pass", "workflow.io.ops.metadata is 76; allowed is <= 76"),
            ("workflow.io.ops.metadata < 76", "fail", "workflow.io.ops.metadata is 76; allowed is < 76"),
            ("workflow.io.ops.metadata == 76", "pass", "workflow.io.ops.metadata is 76; allowed is == 76"),
            ("workflow.io.ops.metadata != 76", "fail", "workflow.io.ops.metadata is 76; allowed is != 76"),
            ("workflow.io.bytes.written <= 31 MB", "fail", "workflow.io.bytes.written is 31.5 MB; allowed is <= 31 MB"),
            # Both would be shown as 31.5 MB.
            ("workflow.io.bytes.written < 31466880", "fail", "workflow.io.bytes.written is 31,466,880 B; allowed is < 31466880"),
            ("workflow.io_time_share <= 1 %", "pass", "workflow.io_time_share is 0.11 %; allowed is <= 1 %"),
            ('apps[*].interface == "posix"', "pass", 'apps[name="v3-cm1like-16r"].interface is posix; allowed is == "posix"'),
            ("apps[0].interface != posix", "fail", 'apps[name="v3-cm1like-16r"].interface is posix; allowed is != posix'),
            ("traces[*].complete == true", "pass", 'traces[path="v3-cm1like-16r"].complete is true; allowed is == true'),
            ('count(files[path~"*.dat"]) == 3', "pass", 'count(files[path~"*.dat"]) is 3; allowed is == 3'),
            ("count(files[size=null]) == 0", None, "number"),
            ("sum(files[*].opens) <= 10", "fail", "sum(files[*].opens) is 38; allowed is <= 10"),
            ("max(files[*].size) <= 1 GiB", "pass", "max(files[*].size) is 10.5 MB; allowed is <= 1 GiB"),
            ('phases[kind="write"].io.ops.read <= 300', "pass", 'phases[app="v3-cm1like-16r", index=1].io.ops.read is 0; allowed is <= 300'),
            ("interfaces[layer=posix].calls <= 1", "fail", 'interfaces[app="v3-cm1like-16r", layer="posix"].calls is 7,846; allowed is <= 1'),
            ('apps[*].io.transfer_size.write.histogram."4K-16K" <= 1', "fail", 'apps[name="v3-cm1like-16r"].io.transfer_size.write.histogram."4K-16K" is 7,680; allowed is <= 1'),
            # A table has no row for a count of zero.
            ("traces[0].functions.fsync <= 0", "pass", 'traces[path="v3-cm1like-16r"].functions.fsync is 0; allowed is <= 0'),
            ("dataset.format.hdf5 >= 1", "fail", "dataset.format.hdf5 is 0; allowed is >= 1"),
            ("apps[*].balance.mean_bytes >= 1 GiB", "fail", 'apps[name="v3-cm1like-16r"].balance.mean_bytes is 2.04 MB; allowed is >= 1 GiB'),
            ("traces[0].functions.open >= 19", "pass", 'traces[path="v3-cm1like-16r"].functions.open is 19; allowed is >= 19'),
        ],
    )  # fmt: skip
    def test_bound_is_satisfied_or_violated(self, tmp_path, expect, status, message):
        if status is None:
            with pytest.raises(DocumentError, match=message):
                policy(tmp_path, budget(expect))
            return
        check = verdict(policy(tmp_path, budget(expect)))
        assert [(one.status, one.message) for one in check.judgements] == [(status, message)]
        assert check.verdict == ("fail" if status == "fail" else "pass")

    def test_each_file_is_judged(self, tmp_path):
        check = verdict(policy(tmp_path, budget('files[path~"*.dat"].size <= 1 MiB', level="warning", name="size")))
        assert [one.target for one in check.judgements] == [
            f"/lustre/scratch/proj/cm1/cm1out_00000{i}.dat" for i in (1, 2, 3)
        ]
        assert {one.level for one in check.judgements} == {"warning"}
        assert (check.counts.warning, check.verdict) == (3, "pass with warnings")

    def test_null_figure_is_not_judged_and_gives_its_reason(self, tmp_path):
        check = verdict(policy(tmp_path, budget("job.nodes <= 4") + budget("workflow.apps <= 1")))
        one = next(one for one in check.judgements if one.status == "unknown")
        assert one.message == (
            "job.nodes is not known (not in the trace: run `vani collect` inside the job and pass job.yaml with --job)"
        )
        assert check.verdict == "pass"

    def test_unknown_app_is_reported_with_the_known_ones(self, tmp_path):
        checks = policy(tmp_path, budget('apps[name="ior"].io.ops.read <= 1') + budget("workflow.apps <= 1"))
        (told,) = [one.message for one in verdict(checks).judgements if one.status == "unknown"]
        assert told.endswith(" matches nothing in this profile: its apps are v3-cm1like-16r")

    def test_check_that_matches_nothing_has_no_verdict(self, tmp_path):
        check = verdict(policy(tmp_path, budget('files[path~"*.h5"].size <= 1') + budget("workflow.apps <= 1")))
        assert ("unknown", 'files[path~"*.h5"].size') in found(check)

    @pytest.mark.parametrize("expect", ["job.nodes <= 4", 'files[path~"*.h5"].size <= 1', 'sum(files[path~"*.h5"].size) <= 1'])
    def test_required_means_that_unknown_counts_as_failure(self, tmp_path, expect):
        check = verdict(policy(tmp_path, budget(expect, required=True)))
        assert [(one.status, one.kind) for one in check.judgements] == [("fail", "missing")]
        assert check.verdict == "fail"

    def test_unlisted_file_is_not_reported_as_missing(self, tmp_path):
        cut = put(tree(), "files", tree()["files"][:2])
        check = verdict(policy(tmp_path, budget('files[path~"*.h5"].size <= 1') + budget("workflow.apps <= 1")), cut)
        assert "lists 2 of 6 files" in next(one.message for one in check.judgements if one.status == "unknown")

    def test_many_passed_checks_are_one_judgement(self, tmp_path):
        many = tree()
        many["files"] = [dict(many["files"][0], path=f"/s/{i:04}", opens=i) for i in range(500)]
        many["dataset"]["files"] = 500
        check = verdict(policy(tmp_path, budget("files[*].opens <= 497")), many)
        assert found(check) == [
            ("fail", 'files[*].opens: files[path="/s/0498"].opens'),
            ("fail", 'files[*].opens: files[path="/s/0499"].opens'),
            ("pass", "files[*].opens: all that pass"),
        ]
        assert check.judgements[-1].message.startswith('498 pass; closest to the limit: files[path="/s/0497"].opens is 497')

    def test_levels_decide_the_verdict(self, tmp_path):
        text = "".join(budget(f"workflow.apps < {n}", level=level) for n, level in ((1, "note"), (0, "warning")))
        checks = policy(tmp_path, text)
        words = [verdict(checks, fail_on=level).verdict for level in ("error", "warning", "note")]
        assert words == ["pass with warnings", "fail", "fail"]
        strict = policy(tmp_path, '[check]\nfail_on = "note"\n' + text)
        assert verdict(strict).verdict == "fail"
        assert verdict(strict, fail_on="error").verdict == "pass with warnings"


class TestNothingToCheck:
    @pytest.mark.parametrize("text", ["[check]\n", budget("job.nodes <= 4"), budget('files[path~"*.h5"].size <= 1')])
    def test_empty_check_is_an_error_unless_allowed(self, tmp_path, text):
        checks = policy(tmp_path, text)
        with pytest.raises(InputError, match=r"nothing to check.*--allow-empty"):
            verdict(checks)
        assert verdict(checks, allow_empty=True).verdict == "pass"


def recommendation(rule: str = "LUS002", severity: str = "high", path: str | None = "/s/job1/x.h5") -> Recommendation:
    return Recommendation(
        rule=rule, name=f"name-of-{rule.lower()}", severity=severity, confidence=0.5,
        target=Target(kind="file", path=path), current={}, recommended={},
        evidence=[Evidence(attribute="files[1].io.bytes.written", value=1)], reason="It is slow.", expected=None,
        apply=["# set it", "lfs setstripe -c 8 /s"], source=[],
    )  # fmt: skip


def asked_rules(
    *some: Recommendation, forbidden: tuple[str, ...] = (), levels: dict[str, str] | None = None
) -> RulesAdvice:
    advice = Advice(
        profile=ProfileRef(path=None, sha256=""), system=SystemRef(name=None, sha256=""),
        recommendations=list(some), no_recommendation=[],
    )  # fmt: skip
    return RulesAdvice(advice, frozenset(forbidden), levels or {})


class TestRules:
    def test_advice_of_a_severity_is_not_accepted(self, tmp_path):
        checks = policy(tmp_path, '[check.rules]\nfail_on_severity = "medium"\nreason = "we tune"\n')
        rules = asked_rules(recommendation(), recommendation("POS002", "medium"), recommendation("POS003", "low"))
        check = verdict(checks, rules=rules)
        assert found(check) == [
            ("fail", "rules.LUS002: name-of-lus002 /s/job1/x.h5"),
            ("fail", "rules.POS002: name-of-pos002 /s/job1/x.h5"),
        ]
        one = check.judgements[0]
        assert one.message == "LUS002 (name-of-lus002), high: It is slow."
        assert (one.value, one.limit, one.reason) == ("high", "below medium", "we tune")
        assert one.todo == "lfs setstripe -c 8 /s (vani explain LUS002)"
        # By name, because the position differs in every run.
        assert one.attribute == 'files[path="/lustre/scratch/proj/cm1/cm1out_000002.dat"].io.bytes.written'

    def test_severity_below_the_limit_gives_one_judgement(self, tmp_path):
        checks = policy(tmp_path, '[check.rules]\nfail_on_severity = "high"\n')
        check = verdict(checks, rules=asked_rules(recommendation(severity="low")))
        assert [(one.id, one.status) for one in check.judgements] == [("rules", "pass")]
        assert check.judgements[0].message == "1 rule was evaluated; the most severe advice is low; allowed is below high"

    def test_forbidden_rules_may_not_fire_at_all(self, tmp_path):
        checks = policy(tmp_path, '[check.rules]\nforbid = ["LUS"]\n')
        rules = asked_rules(recommendation(severity="info"), recommendation("POS002"), forbidden=("LUS002",))
        assert found(verdict(checks, rules=rules)) == [("fail", "rules.LUS002: name-of-lus002 /s/job1/x.h5")]

    def test_rules_have_levels_of_their_own(self, tmp_path):
        checks = policy(tmp_path, '[check.rules]\nfail_on_severity = "high"\nlevel = "warning"\n')
        rules = asked_rules(recommendation(), recommendation("POS002"), levels={"POS002": "note"})
        levels = {one.check: one.level for one in verdict(checks, rules=rules).judgements}
        assert levels == {"rules.LUS002": "warning", "rules.POS002": "note"}

    def test_ids_are_the_same_in_another_job(self, tmp_path):
        checks = policy(tmp_path, '[check.rules]\nfail_on_severity = "high"\n[check.paths]\nstrip = ["/s/job*"]\n')
        for path in ("/s/job1/x.h5", "/s/job22/x.h5"):
            check = verdict(checks, rules=asked_rules(recommendation(path=path)))
            assert found(check) == [("fail", "rules.LUS002: name-of-lus002 x.h5")]
            assert check.judgements[0].target == path


def excuse(**keys: str) -> str:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f'[[check.except]]\nreason = "being mended"\nuntil = 2026-06-01\n{lines}'


class TestExceptions:
    SIZES = budget('files[path~"*.dat"].size <= 1 MiB', name="sizes")
    FIRST = "/lustre/scratch/proj/cm1/cm1out_000001.dat"

    @pytest.mark.parametrize(
        ("keys", "covered"),
        [
            ({"check": "sizes"}, 3),
            ({"check": "si*"}, 3),
            ({"check": "other"}, 0),
            ({"target": "*/cm1out_000001.dat"}, 1),
            ({"attribute": 'files[path="*"].size'}, 0),
            ({"attribute": 'files[path~"*_00000[12].dat"].size'}, 2),
            ({"attribute": 'files[path~"*.dat"].opens'}, 0),
            ({"check": "sizes", "target": "*3.dat"}, 1),
            ({"check": "other", "target": "*3.dat"}, 0),
            ({"rule": "LUS002"}, 0),
        ],
    )
    def test_all_its_keys_must_fit(self, tmp_path, keys, covered):
        check = verdict(policy(tmp_path, self.SIZES + excuse(**keys)))
        assert check.counts.excepted == covered
        assert check.counts.error == 3 - covered
        assert check.verdict == ("pass" if covered == 3 else "fail")
        # An exception that covers nothing is reported.
        assert check.counts.note == (0 if covered else 1)

    def test_a_rule_by_id_or_name(self, tmp_path):
        for name in ("LUS002", "lus002", "name-of-lus002"):
            checks = policy(tmp_path, '[check.rules]\nfail_on_severity = "high"\n' + excuse(rule=name))
            check = verdict(checks, rules=asked_rules(recommendation(), recommendation("POS002")))
            assert [one.id for one in check.judgements if one.status == "excepted"] == [
                "rules.LUS002: name-of-lus002 /s/job1/x.h5"
            ]

    @pytest.mark.parametrize(("today", "status"), [(date(2026, 6, 1), "excepted"), (date(2026, 6, 2), "fail")])
    def test_exception_is_valid_on_its_last_day_and_not_after(self, tmp_path, today, status):
        check = verdict(policy(tmp_path, self.SIZES + excuse(check="sizes")), today=today)
        assert {one.status for one in check.judgements if one.check == "sizes"} == {status}
        if status == "excepted":
            assert check.judgements[0].excepted.model_dump() == {"until": "2026-06-01", "reason": "being mended"}
        else:
            note = next(one for one in check.judgements if one.kind == "exception")
            assert (note.level, note.status) == ("note", "fail")
            assert note.message == "the exception for check sizes expired on 2026-06-01; what it covered fails again"

    def test_unneeded_expired_exception_is_reported(self, tmp_path):
        check = verdict(policy(tmp_path, budget("workflow.apps <= 1") + excuse(check="x")), today=date(2027, 1, 1))
        assert check.judgements[0].message.endswith("expired on 2026-06-01; it covers no failure")

    def test_exception_with_the_latest_end_counts(self, tmp_path):
        later = excuse(check="sizes").replace("2026-06-01", "2027-06-01").replace("mended", "renewed")
        check = verdict(policy(tmp_path, self.SIZES + excuse(check="sizes") + later))
        assert {one.excepted.reason for one in check.judgements if one.excepted} == {"being renewed"}

    def test_satisfied_check_needs_no_exception(self, tmp_path):
        check = verdict(policy(tmp_path, budget("workflow.apps <= 1", name="apps") + excuse(check="apps")))
        assert check.counts.excepted == 0
        assert check.judgements[0].message == "the exception for check apps covers nothing that fails"

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25), deadline=None)
    @given(
        limits=st.lists(st.integers(0, 2), min_size=1, max_size=5),
        excused=st.sets(st.integers(0, 4)),
        days=st.integers(-2, 2),
    )
    def test_verdict_follows_from_the_remaining_calls(self, tmp_path, limits, excused, days):
        # One app: a limit of 0 fails. An exception that expired yesterday covers nothing.
        until = date.fromordinal(TODAY.toordinal() + days)
        text = "".join(budget(f"workflow.apps <= {limit}", name=f"b{i}") for i, limit in enumerate(limits))
        text += "".join(excuse(check=f"b{i}").replace("2026-06-01", until.isoformat()) for i in excused)
        check = verdict(policy(tmp_path, text))
        failing = {i for i, limit in enumerate(limits) if limit < 1}
        left = failing - (excused if days >= 0 else set())
        assert {one.check for one in check.judgements if one.status == "fail" and one.level == "error"} == {
            f"b{i}" for i in left
        }
        assert check.verdict == ("fail" if left else "pass")
        assert check.counts.excepted == len(failing) - len(left)
        assert check.counts.note == len(excused) - (len(excused & failing) if days >= 0 else 0)


class TestChanges:
    def change(self, attribute: str, **more: object) -> str:
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
        return f"[[check.change]]\nattribute = '{attribute}'\n{lines}"

    @pytest.mark.parametrize(
        ("more", "value", "status"),
        [
            ({}, 272, "pass"),
            ({}, 273, "fail"),
            ({}, 1, "pass"),
            ({"direction": "both"}, 1, "fail"),
            ({"direction": "decrease"}, 271, "fail"),
            ({"relative": "10 %"}, 299, "pass"),
            ({"relative": 0.1}, 300, "fail"),
            ({"absolute": 28}, 300, "pass"),
            ({"absolute": 5, "relative": 0.1}, 299, "pass"),
            ({"absolute": 100, "relative": 0.1}, 372, "pass"),
            ({"absolute": 100, "relative": 0.1}, 373, "fail"),
        ],
    )
    def test_a_change_is_allowed_or_not(self, tmp_path, more, value, status):
        checks = policy(tmp_path, self.change("workflow.io.ops.read", **more))
        check = verdict(checks, changed(workflow__io__ops__read=value), [changed()])
        assert [one.status for one in check.judgements] == [status]

    def test_missing_row_of_a_table_counts_as_zero(self, tmp_path):
        checks = policy(tmp_path, self.change("dataset.format.hdf5"))
        (one,) = verdict(checks, changed(dataset__format={"bin": 5, "hdf5": 1}), [changed()]).judgements
        assert (one.status, one.baseline, one.value) == ("fail", 0, 1)

    @pytest.mark.parametrize(
        ("more", "allowed"),
        [
            ({"relative": "10 %"}, "+10 %, so up to 299.2"),
            ({"relative": "10 %", "absolute": 100}, "+10 % or +100, so up to 372"),
            ({"relative": "10 %", "direction": "both"}, "±10 %, so 244.8 to 299.2"),
            ({"relative": "200 %", "direction": "decrease"}, "-200 %, so down to 0"),
            ({}, "no increase"),
        ],
    )
    def test_bound_is_reported_with_its_derivation(self, tmp_path, more, allowed):
        checks = policy(tmp_path, self.change("workflow.io.ops.read", **more))
        (one,) = verdict(checks, changed(workflow__io__ops__read=1000), [changed()]).judgements
        if "direction" in more and more["direction"] == "decrease":
            assert one.status == "pass"
        assert one.message.endswith(f"; allowed: {allowed}")

    def test_files_are_matched_by_name_in_any_order(self, tmp_path):
        checks = policy(tmp_path, self.change("files[*].opens"))
        other = tree()
        other["files"] = [put(one, "opens", one["opens"] + 1) if i == 2 else one for i, one in enumerate(other["files"])]
        name = other["files"][2]["path"]
        random.Random(1).shuffle(other["files"])
        assert [one.target for one in verdict(checks, other, [tree()]).judgements if one.status == "fail"] == [name]

    def test_conditions_come_from_the_checked_profile(self, tmp_path):
        checks = policy(tmp_path, self.change("files[opens>=20].opens"))
        other = put(tree(), "files.0.opens", 100)
        (one,) = (one for one in verdict(checks, other, [tree()]).judgements if one.status == "fail")
        assert (one.value, one.baseline) == (100, tree()["files"][0]["opens"])

    def test_attribute_on_one_side_only_has_no_verdict(self, tmp_path):
        checks = policy(tmp_path, self.change("files[*].opens"))
        new, old = tree(), tree()
        new["files"][0]["path"], old["files"][0]["path"] = "/new", "/old"
        check = verdict(checks, new, [old])
        assert [one.message for one in check.judgements if one.status == "unknown"] == [
            'files[path="/new"].opens is not in the baseline',
            'files[path="/old"].opens is in the baseline and not in the profile',
        ]
        strict = policy(tmp_path, self.change("files[*].opens", required=True))
        assert [one.kind for one in verdict(strict, new, [old]).judgements if one.status == "fail"] == ["missing"] * 2

    def test_change_without_a_baseline_has_no_verdict(self, tmp_path):
        checks = policy(tmp_path, self.change("workflow.apps") + budget("workflow.apps <= 1"))
        assert ("unknown", "change of workflow.apps: workflow.apps") in found(verdict(checks))

    def test_folders_of_jobs_are_stripped(self, tmp_path):
        text = self.change("files[*].opens") + '[check.paths]\nstrip = ["/scratch/job*"]\n'
        runs = [
            put(put(tree(), "files.0.path", f"/scratch/{job}/out.dat"), "files.0.opens", opens)
            for job, opens in (("job1", 5), ("job2", 6))
        ]
        check = verdict(policy(tmp_path, text), runs[1], [runs[0]])
        assert found(check)[0] == ("fail", 'change of files[*].opens: files[path="out.dat"].opens')
        assert check.judgements[0].attribute == 'files[path="/scratch/job2/out.dat"].opens'

    def test_the_change_of_an_aggregate(self, tmp_path):
        checks = policy(tmp_path, self.change("sum(files[*].opens)") + self.change("count(files)"))
        check = verdict(checks, put(tree(), "files.0.opens", 100), [tree()])
        assert [(one.status, one.id) for one in check.judgements] == [
            ("fail", "change of sum(files[*].opens): sum(files[*].opens)"),
            ("pass", "change of count(files[*]): count(files[*])"),
        ]

    def test_own_changes_take_the_place_of_the_built_in_list(self, tmp_path):
        text = self.change("workflow.io.ops.read", relative="1000 %")
        assert [str(one.attribute) for one in policy(tmp_path, text).changes] == ["workflow.io.ops.read"]
        both = policy(tmp_path, text + "[check]\ndefaults = true\n")
        dotted = [leaf.dotted for one in both.changes for leaf in one.leaves]
        assert dotted.count("workflow.io.ops.read") == 1
        assert "workflow.io.ops.write" in dotted


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/scratch/job12/out/x.h5", "out/x.h5"),
        ("/scratch/job12", "/scratch/job12"),
        ("/scratch/other/x.h5", "/scratch/other/x.h5"),
        ("/scratch/job12/job13/x.h5", "job13/x.h5"),
        ("/tmp/run.7/x", "x"),
        ("relative/x", "relative/x"),
    ],
)
def test_stripping(path, short):
    assert stripped(path, ("/scratch/job*", "/tmp/run.[0-9]/")) == short


def test_paths_that_stripping_would_merge_are_kept_complete():
    names = Names(("/s/job*",))
    entities = [{"path": path} for path in ("/s/job1/a", "/s/job2/a", "/s/job1/b", "/s/job1/b")]
    assert names.identities("files", entities) == [("/s/job1/a",), ("/s/job2/a",), ("/s/job1/b",), ("/s/job1/b", 2)]


entity = st.fixed_dictionaries({"path": st.sampled_from(["/a", "/b", "/a.h5"]), "opens": st.integers(0, 3)})


@given(st.lists(entity, max_size=6), st.integers(0, 3), st.booleans())
def test_matches_are_those_that_a_loop_finds(entities, least, by_pattern):
    condition = 'path~"*.h5"' if by_pattern else f"opens>={least}"
    leaf = resolve(parse_attribute(f"files[{condition}].opens"))[1][0]
    content = {"files": entities}
    names = Names()
    wanted = [e["opens"] for e in entities if (e["path"].endswith(".h5") if by_pattern else e["opens"] >= least)]
    hits = list(matches(leaf, content, names, "x"))
    assert [one.value for one in hits] == wanted
    assert [find(one.trail, content, names) for one in hits] == [(True, value) for value in wanted]
    assert len({one.trail for one in hits}) == len(hits)


class TestWholeVerdict:
    TEXT = (
        budget("files[*].opens <= 3")
        + budget("job.nodes <= 4")
        + budget("workflow.apps <= 0", level="warning")
        + "[[check.change]]\nattribute = 'files[*].io.ops.*'\n"
    )

    def test_worst_judgement_comes_first(self, tmp_path):
        check = verdict(policy(tmp_path, self.TEXT), tree(), [put(tree(), "files.0.io.ops.write", 0)])
        order = {"fail": 0, "excepted": 1, "unknown": 2, "pass": 3}
        levels = {"error": 0, "warning": 1, "note": 2}
        keys = [(order[one.status], levels[one.level], one.id) for one in check.judgements]
        assert keys == sorted(keys)
        assert len({one.id for one in check.judgements}) == len(check.judgements)

    def test_the_order_of_entities_and_runs_does_not_matter(self, tmp_path):
        checks = policy(tmp_path, self.TEXT)
        runs = [put(tree(), "files.0.io.ops.write", n) for n in (0, 5, 9)]
        first = verdict(checks, tree(), runs)
        other = tree()
        random.Random(3).shuffle(other["files"])
        for run in runs:
            random.Random(4).shuffle(run["files"])
        again = verdict(checks, other, runs[::-1])
        assert [one.model_dump() for one in again.judgements] == [one.model_dump() for one in first.judgements]

    HOSTILE = ("\n::error::x", "<script>", "a\x00b\x1b[31m", "\u202e\u2028", "x" * 4000, "`|*_", '"] or [', "%0A", "日本")

    def test_hostile_names_do_not_leave_their_field(self, tmp_path):
        hostile = tree()
        hostile["files"] = [dict(hostile["files"][0], path=name) for name in (*self.HOSTILE, "same", "same")]
        hostile["apps"][0]["name"] = self.HOSTILE[0]
        check = verdict(policy(tmp_path, budget("files[*].opens <= 0") + budget("apps[*].runtime_s <= 0")), hostile)
        assert len({one.id for one in check.judgements}) == len(self.HOSTILE) + 3
        text = to_text(check, version="0")
        assert all(line.isprintable() for line in text.splitlines())
        assert not any(line.startswith("::") for line in text.splitlines())
        # Each attribute leads back to its file, whatever the file's name.
        model = figures(hostile)
        for one in check.judgements[: len(self.HOSTILE)]:
            if one.target in self.HOSTILE:
                leaf = resolve(parse_attribute(one.attribute))[1][0]
                assert [hit.target for hit in matches(leaf, model.tree, Names(), "x")] == [one.target]

    def test_numbers_that_no_program_counts_are_refused(self, tmp_path):
        with pytest.raises(DocumentError, match="a number below 1e300"):
            verdict(policy(tmp_path, budget("workflow.io.ops.read <= 1")), changed(workflow__io__ops__read=10**400))


def test_the_same_profile_gives_the_same_document(tmp_path):
    text = dumps(Profile.model_validate(tree()))
    assert text == dumps(Profile.model_validate(tree()))
    checks = policy(tmp_path, TestWholeVerdict.TEXT)
    assert dumps(verdict(checks)) == dumps(verdict(checks))
