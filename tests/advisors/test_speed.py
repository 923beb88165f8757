"""What makes `vani advise` and `vani explain` answer at once."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import file, profile, shared, system

import vani
from vani.advisors.advise import advise_document
from vani.schema.document import dumps, loads
from vani.schema.long_profile import excerpt, most_important
from vani.schema.profile import Profile
from vani.schema.yaml import any_form
from vani.schema.yaml.read import parse
from vani.schema.yaml.read_own import parse_own
from vani.units import GiB, MiB

ROOT = Path(__file__).resolve().parents[2]


def many(count: int, *, in_order: bool = True) -> Profile:
    """Files with different times; `in_order` as `vani profile` lists them."""
    times = [1.0 + (i * 7919 % count) / count for i in range(count)]
    if in_order:
        times.sort(reverse=True)
    return profile(
        [
            (shared if i % 10 == 0 else file)(
                f"/lustre/run/d{i // 1000}/out.{i:05d}", written=(i % 100 + 1) * GiB, read=MiB if i % 3 else 0,
                time_s=seconds, busy_s=seconds / 4, size=(i % 100 + 1) * MiB, role="output",
            )
            for i, seconds in enumerate(times)
        ]
    )  # fmt: skip


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "vani", *arguments],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE)
    return {name.partition(".")[0] for name in names}


def test_advise_loads_no_data_library(tmp_path):
    profile([shared(written=GiB, time_s=400, busy_s=50)]).save(tmp_path / "p.yaml")
    for kind in ("yaml", "json", "markdown", "sarif"):
        packages = loaded("advise", str(tmp_path / "p.yaml"), "--system", "generic-lustre", "--format", kind)
        assert not packages & {"dask", "distributed", "duckdb", "isal", "pandas", "polars", "pyarrow", "rich"}


@pytest.mark.parametrize("arguments", [("explain", "LUS002"), ("rules",), ("rules", "--format", "json")])
def test_explain_and_rules_load_no_library_but_click(arguments):
    assert not loaded(*arguments) & {"dask", "numpy", "pyarrow", "pydantic", "yaml", "rich", "networkx"}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("count", [1, 7, 59])
def test_an_excerpt_is_what_reading_all_and_choosing_gives(in_order, count):
    whole = many(60, in_order=in_order)
    content = dumps(whole).encode()
    found = excerpt(content, count)
    times = [one.io.time_s.total for one in loads(content.decode(), Profile).files]
    kept, share = most_important(times, count)
    assert found.kept == kept
    assert (found.listed, found.io_time_share) == (60, pytest.approx(share))
    part = loads(found.text.decode(), Profile)
    careful = loads(content.decode(), Profile)
    assert part == careful.model_copy(update={"files": [careful.files[i] for i in kept]})
    assert (kept == tuple(range(count))) == in_order or count == 59


def test_text_of_another_shape_is_read_whole():
    text = dumps(many(10))
    assert excerpt(text.encode(), 10) is None
    assert excerpt(text.replace("\nexcluded:", "\n\nexcluded :").encode(), 3) is None
    assert excerpt(text.replace("\n- path: /lustre/run/d0/out.00005", "\n- format: bin\n  path: x").encode(), 3) is None
    assert excerpt(b"", 3) is None
    assert excerpt(b"schema: vani.profile/1\nfiles: []\nexcluded: 1\n", 3) is None


@pytest.mark.parametrize("in_order", [True, False])
def test_advice_by_file_and_by_model_are_the_same(tmp_path, in_order):
    whole = many(60, in_order=in_order)
    whole.save(tmp_path / "p.yaml")
    by_file = advise_document(tmp_path / "p.yaml", system(), files=20)
    by_model = advise_document(Profile.load(tmp_path / "p.yaml"), system(), files=20)
    assert by_file.recommendations == by_model.recommendations
    assert by_file.no_recommendation == by_model.no_recommendation
    assert by_file.profile.files == by_model.profile.files
    assert (by_file.profile.files.listed, by_file.profile.files.judged) == (60, 20)


def test_positions_in_evidence_are_those_of_the_whole_list(tmp_path):
    whole = many(60, in_order=False)
    found = advise_document(whole, system(), files=20)
    checked = 0
    for item in (item for one in found.recommendations for item in one.evidence):
        match = re.fullmatch(r"files\[(\d+)\]\.([a-z_.]+)", item.attribute)
        if match:
            value = whole.files[int(match[1])]
            for name in match[2].split("."):
                value = getattr(value, name)
            assert value == item.value
            checked += 1
    assert checked


def test_few_files_are_all_judged():
    assert advise_document(many(10), system(), files=10).profile.files is None
    assert vani.advise(many(10)).profile.files is None


def test_an_error_in_a_long_profile_names_its_line(tmp_path):
    lines = dumps(many(60)).splitlines()
    at = max(i for i, line in enumerate(lines) if line.startswith("provenance:"))
    lines.insert(at, "exclude: 1")
    (tmp_path / "p.yaml").write_text("\n".join(lines) + "\n")
    with pytest.raises(vani.errors.DocumentError, match=rf"p\.yaml:{at + 1}: unknown key 'exclude'"):
        advise_document(tmp_path / "p.yaml", files=20)


def test_what_vani_writes_is_read_by_the_fast_reader():
    # Keys with points, as in `provenance`, and with brackets had every real profile read by the slow one.
    text = dumps(
        profile([file(written=MiB)], provenance={"io.bytes": "x", "files[].io.past_end": "y", "storage.shared": "z"})
    )

    assert parse_own(text) is not None
    assert parse_own(text) == any_form._build(any_form.compose(text, ""), "")


@pytest.mark.parametrize(
    "line", ["{a: 1, b: 2.5}", "{a: 1, a: 2}", "{a: null, b: true}", "{a: no}", "{a: 01}", "{a: 1e5}", "{a: .5}", "{a: 1.}",
             "{a: -0.0}", "{a: x}", "{a: ~}", "{}", "{a: 1,b: 2}", "{a: 1.0e+9}", "{a: yes}", "{a: -}", "{a: 1_000}"],
)  # fmt: skip
def test_a_short_mapping_is_read_as_libyaml_reads_it(line):
    from vani.errors import DocumentError  # noqa: PLC0415

    text = f"k: {line}\n"
    try:
        careful = any_form._build(any_form.compose(text, ""), "")
    except DocumentError:
        with pytest.raises(DocumentError):
            parse(text, "")
        return
    assert repr(parse(text, "")) == repr(careful)


@pytest.mark.slow
def test_fifty_thousand_files_take_about_half_a_second(tmp_path):
    many(50_000).save(tmp_path / "p.yaml")
    command = [sys.executable, "-m", "vani", "advise", str(tmp_path / "p.yaml"), "--system", "generic-lustre", "-q"]
    took = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - begin)
    print(f"\nbest of 5: {min(took):.2f} s")  # noqa: T201
    # Other work on the machine makes it slower; a reader that parses everything needs more than 5 s.
    assert min(took) < 2
