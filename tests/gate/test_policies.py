"""Policies are found upwards, read from TOML and YAML alike, and refused with the line of the fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gate_cases import HEAD, policy
from hypothesis import given
from hypothesis import strategies as st

from vani.errors import DocumentError, InputError
from vani.gate.baselines import files_to_compare
from vani.gate.policy import find_policy, no_policy, project_folder, read_policy
from vani.schema.syntax.toml_reader import line_of, parse

WHOLE = """\
[check]
baseline = "baseline.yaml"
system = "lassen"
fail_on = "warning"
defaults = true

[[check.budget]]
name = "metadata"
expect = 'workflow.io.ops.metadata <= 1e5'
level = "warning"
required = true
reason = "the metadata server is shared"

[[check.change]]
attribute = 'files[path~"*.h5"].io.bytes.*'
relative = "10 %"
absolute = "4 MiB"
direction = "both"
level = "note"
reason = "outputs"

[check.rules]
fail_on_severity = "high"
forbid = ["POS002"]
ignore = ["LUS"]
level = "warning"

[check.rules.levels]
POS002 = "note"

[[check.except]]
check = "metadata"
until = 2026-12-31
reason = "being mended"

[check.paths]
strip = ["/scratch/job*"]

[advise]
ignore = ["POS"]

[advise.thresholds.LUS002]
knee_gain = 0.25
"""

SAME_IN_YAML = """\
schema: vani.policy/1
check:
  baseline: baseline.yaml
  system: lassen
  fail_on: warning
  defaults: true
  budget:
  - name: metadata
    expect: workflow.io.ops.metadata <= 1e5
    level: warning
    required: true
    reason: the metadata server is shared
  change:
  - attribute: 'files[path~"*.h5"].io.bytes.*'
    relative: 10 %
    absolute: 4 MiB
    direction: both
    level: note
    reason: outputs
  rules:
    fail_on_severity: high
    forbid: [POS002]
    ignore: [LUS]
    level: warning
    levels: {POS002: note}
  except:
  - check: metadata
    until: 2026-12-31
    reason: being mended
  paths:
    strip: [/scratch/job*]
advise:
  ignore: [POS]
  thresholds:
    LUS002: {knee_gain: 0.25}
"""


def test_toml_and_yaml_say_the_same(tmp_path):
    toml = policy(tmp_path, WHOLE)
    yaml = policy(tmp_path, SAME_IN_YAML, ".vani.yaml")
    assert toml.table == yaml.table
    assert toml.advise == yaml.advise
    assert [one.attribute for one in toml.changes] == [one.attribute for one in yaml.changes]
    assert (toml.budgets[0].limit, toml.changes[0].relative, toml.changes[0].absolute) == (100_000, 0.1, 4 << 20)


def test_checks_know_their_lines(tmp_path):
    checks = policy(tmp_path, WHOLE)
    lines = WHOLE.splitlines()
    places = [checks.budgets[0].place, checks.changes[0].place, checks.rules.place, checks.exceptions[0].place]
    headers = ["[[check.budget]]", "[[check.change]]", "[check.rules]", "[[check.except]]"]
    assert [place.line for place in places] == [lines.index(header) + 2 for header in headers]


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("[check]\nbudgets = []\n", 3, "unknown key 'budgets' in check; did you mean 'budget'?"),
        ("[chekc]\n", 2, "unknown key 'chekc' at the top; did you mean 'check'?"),
        ('[[check.budget]]\nexpect = "workflow.apps <= 1"\nlevl = "note"\n', 4, "unknown key 'levl' in check.budget[0]; did you mean 'level'?"),
        ('[[check.budget]]\nexpect = "workflow.apps <= 1"\n\n[[check.budget]]\nlevel = "note"\n', 5, "key 'expect' is missing in check.budget[1]"),
        ('[[check.budget]]\nexpect = "workflow.apps <= 1"\nlevel = "fatal"\n', 4, "check.budget[0].level is 'fatal'; accepted: 'error', 'warning' or 'note'"),
        ('[[check.budget]]\nexpect = "workflow.io.opz.read <= 1"\n', 3, "unknown key 'opz' in workflow.io; did you mean 'ops'?"),
        ('[[check.budget]]\nexpect = "workflow.io.ops.read"\n', 3, "expected `.`, `[` or one of <= < >= > == != at character 21"),
        ('[[check.budget]]\nexpect = "workflow.io.ops.read <= many"\n', 3, "'many' is not a number with a unit"),
        ('[[check.budget]]\nexpect = "workflow.io.ops.read <= 1 MiB"\n', 3, "workflow.io.ops.read is a count, and 1 MiB is a size"),
        ('[[check.budget]]\nexpect = "workflow.runtime_s <= 10 %"\n', 3, "workflow.runtime_s is a time, and 10 % is a share"),
        ('[[check.budget]]\nexpect = "apps[*].interface <= 3"\n', 3, "apps[*].interface has no order; compare it by == or !="),
        ('[[check.budget]]\nexpect = "apps[*].interface == posxi"\n', 3, "apps[*].interface is never 'posxi'; did you mean 'posix'?"),
        ('[[check.budget]]\nexpect = "traces[*].complete == yes"\n', 3, "traces[*].complete is true or false, not 'yes'"),
        ('[[check.change]]\nattribute = "apps[*].interface"\n', 3, "apps[*].interface is not a number"),
        ('[[check.change]]\nattribute = "workflow.runtime_s"\nrelative = "4 KiB"\n', 4, "relative '4 KiB' is a size, which does not fit here"),
        ('[[check.change]]\nattribute = "workflow.runtime_s"\nabsolute = "4 KiB"\n', 4, "absolute '4 KiB' is a size, which does not fit here"),
        ('[[check.change]]\nattribute = "workflow.runtime_s"\nrelative = nan\n', 4, "check.change[0].relative is nan"),
        ('[[check.change]]\nattribute = "workflow.runtime_s"\nrelative = -1\n', 4, "check.change[0].relative is -1"),
        ('[[check.except]]\nuntil = 2026-01-01\nreason = "x"\n', 2, "an exception covers everything"),
        ('[[check.except]]\ncheck = "x"\nreason = "x"\n', 2, "key 'until' is missing in check.except[0]"),
        ('[[check.except]]\ncheck = "x"\nuntil = 2026-01-01\n', 2, "key 'reason' is missing in check.except[0]"),
        ('[[check.except]]\ncheck = "x"\nuntil = "soon"\nreason = "x"\n', 4, "check.except[0].until is 'soon'"),
        ('[[check.budget]]\nname = "a"\nexpect = "workflow.apps <= 1"\n[[check.change]]\nname = "a"\nattribute = "workflow.apps"\n', 6, "two checks are called 'a'"),
        ('[[check.budget]]\nname = "a\\nb"\nexpect = "workflow.apps <= 1"\n', 3, "name contains a control character"),
        ('[[check.except]]\ncheck = "x"\nuntil = 0\nreason = "x"\n', 4, "check.except[0].until is 0; accepted: a day such as 2026-12-31"),
        ('[[check.except]]\ncheck = "x"\nuntil = "2026-13-01"\nreason = "x"\n', 4, "check.except[0].until is '2026-13-01'; accepted: a day such as 2026-12-31"),
        # Unreachable bounds: in percent for a share from 0 to 1.
        ('[[check.budget]]\nexpect = "workflow.io.access_pattern.random <= 10"\n', 3, "workflow.io.access_pattern.random is a share, from 0 to 1, and never 10; did you mean 10 %?"),
        ('[[check.budget]]\nexpect = "workflow.io_time_share <= 110 %"\n', 3, "workflow.io_time_share is a share, from 0 to 1, and never 110 %"),
        ('[[check.budget]]\nexpect = "files[access_pattern.random > 50].size <= 1"\n', 3, "files[].io.access_pattern.random is a share, from 0 to 1, and never 50; did you mean 50 %?"),
        ('[[check.change]]\nattribute = "workflow.runtime_s"\nrelative = 10\n', 4, 'relative 10 is 1000 %; write "10 %" or "1000 %"'),
        ('[[check.change]]\nattribute = "workflow.io_time_share"\nabsolute = 5\n', 4, 'absolute 5 is 500 %; write "5 %" or "500 %"'),
        ("[check.rules]\nlevel = 'note'\n", 2, "accepts any advice; give `fail_on_severity` or `forbid`"),
        ("[check\n", 2, "not TOML"),
        ("check = 3\n", 2, "check is 3; accepted: a mapping or null"),
    ],
)  # fmt: skip
def test_fault_is_reported_with_its_line(tmp_path, text, line, error):
    with pytest.raises(DocumentError) as raised:
        policy(tmp_path, HEAD + text)
    assert str(raised.value).startswith(f"{tmp_path}/vani.toml:{line}: {error}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[check]\n", 'vani.toml: has no `schema:`; start it with `schema = "vani.policy/1"`'),
        ('schema = "vani.policy/9"\n', "vani.toml:1: schema vani.policy/9 is newer than this Vani"),
        ('schema = "vani.profile/1"\n', "vani.toml:1: schema is 'vani.profile/1', a profile, for `vani advise`, `report`, `check` and `diff`; known here is vani.policy/1"),
        ("a = " + "[" * 5000 + "]" * 5000, "vani.toml: is nested too deeply"),
        ("x = 1\n" * 200_000, "vani.toml: is longer than 1 MiB"),
    ],
)
def test_invalid_policy_is_refused(tmp_path, text, error):
    path = tmp_path / "vani.toml"
    path.write_text(text)
    with pytest.raises(DocumentError) as raised:
        read_policy(path)
    assert error in str(raised.value)


def test_policy_with_only_an_advise_table_has_the_default_checks(tmp_path):
    path = tmp_path / "vani.toml"
    path.write_text('[advise]\nignore = ["POS"]\n\n[other.tool]\nx = 1\n')
    checks = read_policy(path)
    assert (checks.budgets, checks.rules) == ((), None)
    assert checks.changes == no_policy().changes != ()
    assert checks.advise == {"ignore": ["POS"]}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[advise]\n[[chekc.budget]]\nexpect = 'workflow.apps <= 1'\n", "2: unknown key 'chekc' at the top; did you mean 'check'?"),
        ("[[budget]]\nexpect = 'workflow.apps <= 1'\n", "1: unknown key 'budget' at the top; did you mean 'check.budget'?"),
        ("[rules]\nforbid = ['LUS']\n", "1: unknown key 'rules' at the top; did you mean 'check.rules'?"),
    ],
)  # fmt: skip
def test_policy_that_would_be_ignored_is_refused(tmp_path, text, error):
    path = tmp_path / "vani.toml"
    path.write_text(text)
    with pytest.raises(DocumentError) as raised:
        read_policy(path)
    assert str(raised.value) == f"{path}:{error}"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ((HEAD + "a = 1\n").encode("utf-16"), "vani.toml: is binary, not text"),
        (HEAD.encode() + b"a = 1\nb = '\xe9'\n", "vani.toml:3: is not UTF-8 text (byte 0xe9); save it as UTF-8"),
        (b"a = 1\0\n", "vani.toml: is binary, not text"),
    ],
)
def test_binary_policy_is_refused(tmp_path, content, error):
    (tmp_path / "vani.toml").write_bytes(content)
    with pytest.raises(DocumentError) as raised:
        read_policy(tmp_path / "vani.toml")
    assert str(raised.value) == f"{tmp_path}/{error}"


def test_byte_order_mark_and_windows_lines_are_accepted(tmp_path):
    for name, text in (("vani.toml", WHOLE), ("x.yaml", "check:\n  budget:\n  - expect: workflow.apps <= 1\n")):
        head = HEAD if name == "vani.toml" else "schema: vani.policy/1\n"
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (head + text).replace("\n", "\r\n").encode())
        assert read_policy(tmp_path / name).budgets


def test_endless_file_is_refused_immediately():
    with pytest.raises(DocumentError, match=r"^/dev/zero: is longer than 1 MiB; name a policy: vani.toml or .vani.yaml$"):
        read_policy(Path("/dev/zero"))


class TestSearch:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        (tmp_path / "home" / "project" / "src").mkdir(parents=True)
        return tmp_path / "home"

    def test_the_nearest_policy_upwards_counts(self, home):
        (home / "vani.toml").write_text("")
        (home / "project" / ".vani.yaml").write_text("")
        assert find_policy(home / "project" / "src") == Path("../.vani.yaml")

    def test_the_search_ends_at_the_top_of_the_repository(self, home):
        (home / "vani.toml").write_text("")
        assert find_policy(home / "project" / "src") == Path("../../vani.toml")
        (home / "project" / ".git").mkdir()
        assert find_policy(home / "project" / "src") is None

    def test_the_search_ends_at_home(self, home):
        (home.parent / "vani.toml").write_text("")
        assert find_policy(home / "project") is None

    def test_two_policies_in_a_folder_are_refused(self, home):
        for name in ("vani.toml", ".vani.yaml"):
            (home / "project" / name).write_text("")
        with pytest.raises(InputError, match=r"contains both vani.toml and .vani.yaml"):
            find_policy(home / "project")

    @pytest.mark.parametrize(
        ("make", "error"),
        [
            (lambda path: path.mkdir(), "is a directory"),
            (lambda path: path.symlink_to("nowhere"), "is a broken link"),
            (lambda path: path.symlink_to(path.name), "is a broken link"),
            (os.mkfifo, "is not a file"),
        ],
    )
    def test_invalid_file_named_like_a_policy_is_not_skipped(self, home, make, error):
        (home / "vani.toml").write_text("")
        make(home / "project" / "vani.toml")
        with pytest.raises(InputError, match=f"{error}; remove it, or replace it by a file"):
            find_policy(home / "project" / "src")

    def test_missing_baseline_target_is_an_error(self, home):
        (home / "project" / ".vani").mkdir()
        (home / "project" / ".vani" / "baseline.yaml").symlink_to("lost.yaml")
        with pytest.raises(InputError, match=r"baseline\.yaml: is a broken link"):
            project_folder(home / "project" / "src")
        checks = policy(home / "project", "[check]\n")
        with pytest.raises(InputError, match=r"baseline\.yaml: is a broken link"):
            files_to_compare(checks, ())

    def test_without_a_policy_the_nearest_baseline_makes_the_project(self, home):
        assert project_folder(home / "project" / "src") == Path()
        (home / "project" / ".vani").mkdir()
        (home / "project" / ".vani" / "baseline.yaml").write_text("")
        assert project_folder(home / "project" / "src") == Path("..")


class TestLinesOfToml:
    TEXT = '''\
# [not.a.table]
a = 1
"b.c" = { d = 2 }
text = """
[not.a.table]
e = 3
"""
literal = \'\'\'
f = 4
\'\'\'
list = [
  "x]", # ]
  [1],
]
[g]
h.i = 5
[[g.j]]
k = 6
[[g.j]]
k = 7
[g.j.l]
m = 8
'''

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            (("a",), 2),
            (("b.c", "d"), 3),
            (("text",), 4),
            (("e",), 1),
            (("not",), 1),
            (("literal",), 8),
            (("list", 1, 0), 11),
            (("g",), 15),
            (("g", "h", "i"), 16),
            (("g", "j", 0, "k"), 18),
            (("g", "j", 1, "k"), 20),
            (("g", "j", 1, "l", "m"), 22),
            (("g", "j", 1, "nothing"), 19),
        ],
    )
    def test_key_is_located_in_its_file(self, path, line):
        assert parse(self.TEXT, "x")["g"]["j"][1]["k"] == 7
        assert line_of(self.TEXT, path) == line

    @given(st.text(alphabet="ab.=[]{}\"'#\n \\,1", max_size=60), st.lists(st.sampled_from(["a", "b", 0]), max_size=3))
    def test_any_text_has_lines(self, text, path):
        assert 1 <= line_of(text, tuple(path)) <= text.count("\n") + 1
