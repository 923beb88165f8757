"""Kept settings as a shell script that applies and undoes them, and prints lines for the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.render.advice.script import Step, render_steps

if TYPE_CHECKING:
    from vani.schema.tuned import Tuned

def tuned_script(tuned: Tuned) -> str:
    """Write tuned.sh; see `vani.render.advice.script.render_steps`."""
    steps = (
        Step(f"{setting.rule} {setting.name}", f"(measured): {setting.reason}", setting.apply)
        for setting in tuned.settings
    )
    return render_steps(steps, maker=f"vani tune {tuned.version} on {tuned.host}", name="tuned.sh")
