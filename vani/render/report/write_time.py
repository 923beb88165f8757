"""Predicted and measured time of a run's writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.centre.prediction.schema import WriteTimePrediction
    from vani.schema.profile import Profile

def measured_and_predicted(profile: Profile, prediction: WriteTimePrediction) -> tuple[str, str]:
    """The time of the slowest process, and the model's prediction of it."""
    slowest = [app.balance.slowest_io_time_s for app in profile.apps if app.balance is not None]
    measured = max((time_s for time_s in slowest if time_s is not None), default=None)
    if prediction.seconds is None or prediction.low is None or prediction.high is None:
        return (
            f"{format_seconds(measured)}; outside the model's range",
            one_line(f"outside it: {'; '.join(prediction.outside)}"),
        )
    low, high = format_seconds(prediction.low), format_seconds(prediction.high)
    value = f"{format_seconds(measured)}; {low} to {high} predicted"
    if measured is None:
        return value, f"{prediction.model}"
    where = (
        "faster than nine of ten" if measured < prediction.low
        else "slower than nine of ten" if measured > prediction.high
        else "as expected"
    )  # fmt: skip
    return value, f"{where}; most probable {format_seconds(prediction.seconds)}, by {prediction.model}"
