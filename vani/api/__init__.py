"""Vani as a library: one function per command::

    import vani
    profile = vani.profile("traces/ior")
    profile.save("profile.yaml")
    profile.frame("files")

A function raises `InputError`, with a one-line message for the user, if it cannot use a trace or a document.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vani.api.advise import advise
    from vani.api.advise_next import advise_next
    from vani.api.apply import Applied, Check, apply
    from vani.api.arguments import JUDGED_FILES
    from vani.api.assistant.server import mcp_serve
    from vani.api.baseline import baseline_figures, save_baseline
    from vani.api.benchmark import benchmark_result, measured_system
    from vani.api.characterise import Characterised, characterise
    from vani.api.check import check
    from vani.api.convert import convert
    from vani.api.diff import diff
    from vani.api.events import Events, events
    from vani.api.gate_inputs import files_of_gate
    from vani.api.heat_map import heat_map
    from vani.api.history.add import AddedAndJudged, history_add
    from vani.api.history.creations import creations_jobs, creations_rows, history_creations
    from vani.api.history.daily import history_daily
    from vani.api.history.evaluate import history_evaluate
    from vani.api.history.maintenance import (
        history_anonymise,
        history_damaged,
        history_export,
        history_export_runs,
        history_import,
        history_import_jobs,
        history_list,
        history_remove,
        history_upgrade,
        is_accounting_file,
    )
    from vani.api.history.metrics import history_metrics
    from vani.api.history.outcome import history_outcome, history_record_letter
    from vani.api.history.phases import history_phases
    from vani.api.history.predict import history_next_runs, history_predict
    from vani.api.history.serve import HistoryServer, history_server, token_in
    from vani.api.history.show import history_show
    from vani.api.history.targets import history_targets
    from vani.api.history.top import history_top
    from vani.api.model.fit import model_evaluate, model_fit
    from vani.api.model.predict import model_predict
    from vani.api.plan.check import plan_check
    from vani.api.plan.forward import plan_forward
    from vani.api.plan.learn import plan_learn
    from vani.api.plan.listen import plan_listen, snapshots
    from vani.api.plan.outcome import plan_outcome
    from vani.api.plan.path import plan_path
    from vani.api.plan.place import plan_place
    from vani.api.plan.publish import plan_publish
    from vani.api.plan.replay import plan_replay
    from vani.api.plan.scored import plan_scored
    from vani.api.plan.simulate import plan_simulate
    from vani.api.plan.snapshot import plan_snapshot
    from vani.api.plan.store import Stored, plan_interactions, plan_store
    from vani.api.profile import profile
    from vani.api.report import Reported, report, reported
    from vani.api.table import table
    from vani.api.trace import Trace, trace
    from vani.api.tune import tune, tune_again, tuned_state

__all__ = [
    "JUDGED_FILES",
    "AddedAndJudged",
    "Applied",
    "Characterised",
    "Check",
    "Events",
    "HistoryServer",
    "Reported",
    "Stored",
    "Trace",
    "advise",
    "advise_next",
    "apply",
    "baseline_figures",
    "benchmark_result",
    "characterise",
    "check",
    "convert",
    "creations_jobs",
    "creations_rows",
    "diff",
    "events",
    "files_of_gate",
    "heat_map",
    "history_add",
    "history_anonymise",
    "history_creations",
    "history_daily",
    "history_damaged",
    "history_evaluate",
    "history_export",
    "history_export_runs",
    "history_import",
    "history_import_jobs",
    "history_list",
    "history_metrics",
    "history_next_runs",
    "history_outcome",
    "history_phases",
    "history_predict",
    "history_record_letter",
    "history_remove",
    "history_server",
    "history_show",
    "history_targets",
    "history_top",
    "history_upgrade",
    "is_accounting_file",
    "mcp_serve",
    "measured_system",
    "model_evaluate",
    "model_fit",
    "model_predict",
    "plan_check",
    "plan_forward",
    "plan_interactions",
    "plan_learn",
    "plan_listen",
    "plan_outcome",
    "plan_path",
    "plan_place",
    "plan_publish",
    "plan_replay",
    "plan_scored",
    "plan_simulate",
    "plan_snapshot",
    "plan_store",
    "profile",
    "report",
    "reported",
    "save_baseline",
    "snapshots",
    "table",
    "token_in",
    "trace",
    "tune",
    "tune_again",
    "tuned_state",
]

_MODULES = {
    "Applied": "apply",
    "Check": "apply",
    "JUDGED_FILES": "arguments",
    "mcp_serve": "assistant.server",
    "benchmark_result": "benchmark",
    "measured_system": "benchmark",
    "baseline_figures": "baseline",
    "save_baseline": "baseline",
    "Characterised": "characterise",
    "Events": "events",
    "files_of_gate": "gate_inputs",
    "AddedAndJudged": "history.add",
    "creations_jobs": "history.creations",
    "creations_rows": "history.creations",
    "history_anonymise": "history.maintenance",
    "history_damaged": "history.maintenance",
    "history_export": "history.maintenance",
    "history_export_runs": "history.maintenance",
    "history_import": "history.maintenance",
    "history_import_jobs": "history.maintenance",
    "history_list": "history.maintenance",
    "history_remove": "history.maintenance",
    "history_upgrade": "history.maintenance",
    "is_accounting_file": "history.maintenance",
    "history_next_runs": "history.predict",
    "history_record_letter": "history.outcome",
    "HistoryServer": "history.serve",
    "history_server": "history.serve",
    "token_in": "history.serve",
    "model_evaluate": "model.fit",
    "snapshots": "plan.listen",
    "Stored": "plan.store",
    "plan_interactions": "plan.store",
    "Reported": "report",
    "reported": "report",
    "Trace": "trace",
    "tune_again": "tune",
    "tuned_state": "tune",
}
"""Submodules whose name differs from the function's: `plan_path` is in `plan.path`. Others match, such as `diff`."""


class _Library(ModuleType):
    """The package as a module that loads each of its fifty submodules when its function is first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _MODULES.get(name) or re.sub("^(history|model|plan)_", r"\1.", name)
        value = getattr(import_module(f"{__name__}.{module}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # A submodule that is loaded replaces the function of the same name.
        is_own = isinstance(value, ModuleType) and name in __all__
        super().__setattr__(name, getattr(value, name) if is_own else value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Library
