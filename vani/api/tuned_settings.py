"""Settings that `vani tune` applies to a run, and the lines for those it keeps."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vani.advisors.mpiio.mpiio_files import hint_lines
from vani.api.apply import run_script, undo_script
from vani.api.layouts import layout_line, layout_problem, missing_program
from vani.collect.tracing.launchers import mapped
from vani.errors import InputError
from vani.render.script import Step, render_steps
from vani.schema.tuned import Setting, Tuned, TunedSetting


def kept_settings(tuned: Tuned, candidates: Sequence[int]) -> list[TunedSetting]:
    """Lines for the kept settings: the last candidate's if several set the same layout or variable."""
    settings = []
    for position, index in enumerate(candidates):
        candidate = tuned.candidates[index]
        later = tuned.setting(list(candidates[position + 1 :]))
        lines = [*_lines(candidate.setting, later, tuned)]
        if lines:
            settings.append(
                TunedSetting(rule=candidate.rule, name=candidate.name, reason=candidate.reason, apply=lines)
            )
    return settings


def _lines(setting: Setting, later: Setting, tuned: Tuned) -> Iterator[str]:
    if setting.layout is not None and later.layout is None:
        yield layout_line(setting.layout, tuned.data)
    hints = {name: value for name, value in setting.hints.items() if name not in later.hints}
    if hints:
        yield from hint_lines(hints)
        ompio = Setting(hints=hints).ompio
        if ompio:
            yield "# job script, Open MPI with its own MPI-IO (ompi_info --param io ompio --level 9):"
            yield from (f"export {name}={shlex.quote(value)}" for name, value in ompio.items())
    for name, value in setting.environment.items():
        if name not in later.environment:
            yield f"export {name}={shlex.quote(value)}"
    for source, near in setting.stage_in.items():
        if source not in later.stage_in:
            yield f"# job script, before the program, which reads $near_input in place of {source}:"
            yield f"near_input=$(mktemp -d {shlex.quote(near)}/vani-XXXXXX)"
            yield f'cp -R -p {shlex.quote(source)}/. "$near_input"/'
            yield "# and after it:"
            yield 'rm -r "$near_input"'
    if setting.stage_out is not None and later.stage_out is None:
        yield f"# job script, before the program, which writes to $near_output in place of {tuned.data}:"
        yield f"near_output=$(mktemp -d {shlex.quote(setting.stage_out)}/vani-XXXXXX)"
        yield "# and after it, also where it failed:"
        yield f'cp -R -p "$near_output"/. {shlex.quote(tuned.data)}/ && rm -r "$near_output"'
    if setting.mapping is not None and later.mapping is None:
        yield "# job script: start the program like this"
        yield shlex.join(mapped(tuned.command, setting.mapping) or tuned.command)


@dataclass(frozen=True)
class ScriptedLayouts:
    """Sets layouts with the script that `vani advise --script` writes and `vani apply` runs."""

    state: Path

    def set(self, folder: Path, options: str) -> str | None:
        if (program := missing_program(options)) is not None:
            return f"{program} is not installed here"
        step = Step("vani tune", "tries this layout", [layout_line(options, folder)])
        try:
            run_script(render_steps([step], maker="vani tune"), self.state)
        except InputError as error:
            # For example more stripes than there are targets; other settings may work.
            return error.what
        problem = layout_problem(folder, options)
        return problem[0] if problem is not None and problem[1] is False else None

    def undo(self) -> None:
        if self.state.is_dir():
            undo_script(self.state)
            # Anything left belongs to a folder that the program removed.
            shutil.rmtree(self.state, ignore_errors=True)
