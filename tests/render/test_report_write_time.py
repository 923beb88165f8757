"""`vani report --model`: the time of a run's writes next to a model's prediction."""

from __future__ import annotations

from pathlib import Path

import pytest
from render.report_inputs import GOLDEN, golden

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

import vani
from vani import centre
from vani.centre.prediction.text import measured_and_predicted
from vani.centre.write_time.predict import profile_write_time
from vani.errors import InputError
from vani.schema.profile import Profile


def samples(folder: Path, profile, factor: float = 1.0, more: str = "") -> Path:
    """Writes of other sizes by other numbers of processes, `factor` times as slow as the run."""
    slowest = max(app.balance.slowest_io_time_s for app in profile.apps if app.balance is not None)
    size, processes = profile.workflow.io.bytes.written, profile.workflow.processes
    rows = "".join(
        f"{p},{b},{factor * slowest * (b / size) * processes / p * (1 + n % 3 / 10)}{more}\n"
        for p in (processes // 4, processes // 2, processes)
        for n, b in enumerate((size // 4, size // 2, size, 2 * size))
    )
    path = folder / "samples.csv"
    path.write_text(f"processes,bytes,seconds{',x' if more else ''}\n{rows}")
    return path


def fitted(folder: Path, profile, factor: float = 1.0, more: str = "") -> Path:
    model = folder / "model.yaml"
    model.write_text(centre.model_fit(samples(folder, profile, factor, more), method="stage_sum").to_yaml())
    return model


@pytest.fixture
def run_that_writes():
    return GOLDEN / "v3-cm1like-16r.yaml", golden()


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, "as expected"), (5.0, "faster than nine of ten"), (0.2, "slower than nine of ten")],
)
def test_report_compares_a_runs_writes_with_the_model(tmp_path, run_that_writes, factor, verdict):
    path, profile = run_that_writes
    text = vani.report(path, model=fitted(tmp_path, profile, factor), format="txt")
    line = next(line for line in text.splitlines() if line.strip().startswith("Writes"))
    assert "predicted" in line
    assert verdict in text
    for format in ("markdown", "html"):
        assert "predicted" in vani.report(path, model=tmp_path / "model.yaml", format=format)


def test_no_gain_is_promised_outside_the_model(tmp_path, run_that_writes):
    path, profile = run_that_writes
    tree = profile.model_dump(by_alias=True)
    tree["workflow"]["io"]["bytes"]["written"] *= 100
    larger = Profile.model_validate(tree)
    model = fitted(tmp_path, profile)
    value, note = measured_and_predicted(larger, profile_write_time(larger, model))
    assert value.endswith("outside the model's range")
    assert note.startswith("outside it: bytes")
    assert "predicted" not in vani.report(path, format="txt")


def test_model_with_a_column_unknown_to_profiles_is_refused(tmp_path, run_that_writes):
    path, profile = run_that_writes
    with pytest.raises(InputError, match="the model needs x, which this profile does not have"):
        vani.report(path, model=fitted(tmp_path, profile, more=",1"), format="txt")
