"""profile.yaml: how a workload uses storage, as entities and attributes (tables II to XI of the Vani paper).

An attribute that could not be found is null, never a guess and never 0; `provenance` gives the reason, by attribute
path. Times are null in a profile that was made without reading time stamps (`vani profile --quick`).
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from pydantic import Field

import vani
from vani.errors import one_line
from vani.schema.document import Document
from vani.schema.model import Model, SparseModel, schema_field
from vani.schema.profile.iostats import (
    AccessPattern,
    Bandwidth,
    ByKind,
    ByteCounts,
    CallCost,
    Count,
    Footprint,
    IOStats,
    KindShares,
    LibraryCall,
    LibraryTime,
    MetadataCost,
    MetadataKinds,
    OpCounts,
    PastEnd,
    Seconds,
    Sizes,
    TransferSizes,
)
from vani.schema.profile.storage import (
    Dataset,
    Excluded,
    FileEntity,
    Folder,
    Lock,
    LookUp,
    Mount,
    NodeLocalStorage,
    SharedStorage,
    SizeDistribution,
    Storage,
    TargetUse,
)
from vani.schema.profile.workload import (
    Access,
    Amplification,
    App,
    AppDependency,
    DataRepresentation,
    Dominant,
    FileCounts,
    FileLevelDependencies,
    Frequency,
    Granularity,
    Interface,
    JobEntity,
    Matters,
    Middleware,
    NamePattern,
    Phase,
    PhaseIO,
    ProcessDependencies,
    RankBalance,
    Repeats,
    Unseen,
    UnseenKind,
    Verdict,
    VerdictCause,
    VerdictParts,
    Workflow,
)
from vani.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ExtensionRow:
    """One value."""

    measure: str
    attribute: str
    """Place in the result, such as `by_rank[3].count`; empty for the result itself."""
    value: bool | int | float | str | None


def extension_rows(extensions: Mapping[str, Any]) -> Iterator[ExtensionRow]:
    """Yield every value in the order of the document; empty collections have none."""
    for measure, result in extensions.items():
        for attribute, value in _values(result, ""):
            yield ExtensionRow(measure, attribute, value)


def _values(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, element in value.items():
            yield from _values(element, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from _values(element, f"{where}[{i}]")
    else:
        yield where, value


FrameName = Literal[
    "unseen", "traces", "apps", "phases", "interfaces", "accesses", "folders", "patterns", "files", "extensions"
]
FRAMES: Final[tuple[str, ...]] = get_args(FrameName)
"""Names of the tables of a profile."""
_NAMED: Final = 3
_EXTENSION: Final = tuple(field.name for field in fields(ExtensionRow))


class Generator(Model):
    """The program that wrote the profile."""

    name: str = Field(description="name of the program: vani")
    version: str = Field(description="version of the program")


class TraceEntity(Model):
    """One trace directory."""

    path: str = Field(description="absolute path of the trace")
    tool: str = Field(
        description="tool that wrote the trace: recorder, recorder2parquet, wisio, darshan, dftracer, otf2 or strace"
    )
    format: str = Field(description="format version that the trace states")
    layout: str | None = Field(default=None, description="layout on disk, if the format version does not determine it")
    app: str = Field(description="name of the executable")
    ranks: Count = Field(description="number of processes of the run")
    records: Count = Field(description="number of calls in the trace, over all layers")
    functions: dict[str, Count] = Field(description="number of records by function, most frequent first")
    start_unix_s: Seconds | None = Field(
        default=None, description="wall-clock start in seconds since 1970; null if the trace does not store it"
    )
    span_s: Seconds | None = Field(default=None, description="end of the last call, on the clock of its rank")
    repaired_times: Count | None = Field(
        default=0, description="number of negative time stamps that were repaired; null if time stamps were not read"
    )
    clock_skew_s: Seconds | None = Field(
        default=None, description="lower bound on the clock skew between ranks, proved by collective calls"
    )
    complete: bool | None = Field(
        description="true if nothing had to be left out; null if nothing was left out but time stamps were not read"
    )
    problems: list[str] = Field(description="damage to the trace, and what was left out because of it")


class Profile(SparseModel, Document):
    """The characterisation of one workload."""

    optional_keys: ClassVar[tuple[str, ...]] = ("bounds",)

    schema_: Literal["vani.profile/4"] = schema_field("vani.profile/4")
    generator: Generator = Field(description="program that wrote this document")
    verdict: Verdict | None = Field(
        default=None, description="whether storage matters to this run, and why; null if it was not judged"
    )
    unseen: list[Unseen] | None = Field(
        default=None,
        fail_fast=True,
        description="activity that must have happened but that the trace does not record; empty if there is no sign "
        "of any; null if it was not looked for",
    )
    traces: list[TraceEntity] = Field(fail_fast=True, description="traces, one entry per trace directory")
    job: JobEntity = Field(description="configuration of the job (table II)")
    workflow: Workflow = Field(description="totals of the whole workload (table III)")
    apps: list[App] = Field(fail_fast=True, description="apps, one entry per executable (table IV)")
    phases: list[Phase] | None = Field(
        fail_fast=True,
        description="I/O phases by app and time, with similar phases in one row (table V); null if time stamps were "
        "not read",
    )
    interfaces: list[Interface] | None = Field(
        fail_fast=True,
        description="use of I/O libraries, one entry per layer and app (tables VI, VII); null if the source does not "
        "record libraries",
    )
    accesses: list[Access] | None = Field(
        fail_fast=True,
        default=None,
        description="data calls by file, direction and layer: one row for all files, then those of the listed files; "
        "rows without calls are left out",
    )
    middleware: Middleware = Field(description="resources left for middleware (table VII)")
    storage: Storage = Field(description="storage that the run used (tables VIII and IX)")
    dataset: Dataset = Field(description="totals of all files together (table X)")
    folders: list[Folder] | None = Field(
        fail_fast=True,
        default=None,
        description="the hundred folders with most metadata time (most calls if times are unknown) and the ten with "
        "most files, over all files of the run",
    )
    lookups: list[LookUp] | None = Field(
        fail_fast=True,
        default=None,
        description="the ten folders with most time in look-ups of names (most look-ups if times are unknown), of ten "
        "or more; null if the source does not show them",
    )
    locks: list[Lock] | None = Field(
        fail_fast=True, default=None, description="functions that lock files; null if the source does not show them"
    )
    patterns: list[NamePattern] | None = Field(
        fail_fast=True,
        default=None,
        description="the hundred name patterns with most I/O time (most bytes if times are unknown) and the ten with "
        "most files, over all files of the run; null if the source does not show which names belong to the same file",
    )
    files: list[FileEntity] = Field(
        fail_fast=True,
        description="the files with most I/O time (most bytes if times are unknown), or all files (table XI)",
    )
    excluded: Excluded = Field(description="paths that are not dataset files, counted separately")
    extensions: dict[str, Any] = Field(default_factory=dict, description="results of plug-in measures, by name")
    bounds: dict[str, tuple[float, float]] = Field(
        default_factory=dict,
        description="lower and upper bound by attribute path, for values that the source only bounds; the value "
        "itself is one of the two (`provenance` states which); left out if there are none",
    )
    provenance: dict[str, str] = Field(description="source of a value, or the reason why it is null, by attribute path")

    @property
    def application(self) -> str:
        """Names of the first five apps joined by `+`, used as the application's name in a history."""
        return "+".join(app.name for app in self.apps[:5]) or "unknown"

    @property
    def lists_all_files(self) -> bool:
        """Whether every file of the data set is in `files`."""
        return self.dataset.files is not None and self.dataset.files <= len(self.files)

    def summary(self, *, diagnosis: bool = False) -> str:
        """The first screen: the run; whether I/O matters, why, when, where; with `diagnosis` the behaviour."""
        return str(vani.profile_screen(self, vani.diagnosis(self) if diagnosis else ()))

    def advise(self, **options: Any) -> Any:
        """Return settings for this workload (`vani.Advice`); takes the options of `vani.advise`, such as `system`."""
        return vani.advise(self, **options)

    def plot(self, kind: str = "layers", **options: Any) -> Any:
        """One plot, by default the time in each layer, as notebooks show it (`vani.render.plots.drawing.Drawing`).

        `vani plot --list` names the kinds.

        Some kinds need the trace, or the store that was made of it (`store`). Without the extra `plot`
        (`pip install 'vani-io[plot]'`) notebooks draw the specification themselves; images of files
        are `vani.plot`'s.

        Raises
        ------
        InputError
            There is no such kind, or the profile lacks its figures.
        """
        return vani.drawing(kind, self, **options)

    def __repr__(self) -> str:
        """One line, whatever the profile contains."""
        names = ", ".join(one_line(app.name) for app in self.apps[:_NAMED])
        more = f" and {len(self.apps) - _NAMED} more" if len(self.apps) > _NAMED else ""
        workflow = self.workflow
        figures = [counted(workflow.processes, "process")]
        if workflow.runtime_s is not None:
            figures.append(format_seconds(workflow.runtime_s))
        figures += [
            f"{format_bytes(workflow.io.bytes.written)} written",
            f"{format_bytes(workflow.io.bytes.read)} read",
        ]
        return f"<Profile of {names}{more}: {', '.join(figures)}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The first screen, as notebooks show it."""
        lines = [html.escape(line) for line in self.summary().split("\n")]
        return f"<pre><b>{lines[0]}</b>\n" + "\n".join(lines[1:]) + "</pre>"

    def table(self, name: FrameName) -> "pa.Table":
        """Return one of the profile's tables as an Arrow table with the columns of `frame`; this needs no extra.

        Raises
        ------
        ValueError
            There is no such table; the message names those that there are.
        """
        return _arrow_table(self._rows(name))

    def frame(self, name: FrameName) -> "pd.DataFrame":
        """One of the profile's tables, see `FRAMES`, as a pandas frame: a row per entity, columns like `io.bytes.read`.

        It needs the extra `frames` (`pip install 'vani-io[frames]'`); `table` does not need it.

        For `extensions` a row per value: measure, attribute (its path in the measure's result), value.

        Raises
        ------
        ValueError
            There is no such table; the message names those that there are.
        ImportError
            pandas is not installed (`pip install 'vani-io[frames]'`); `table` does not need it.
        """
        rows = self._rows(name)
        try:
            import pandas as pd  # noqa: PLC0415 - heavy and rarely wanted
        except ImportError as error:
            todo = "pip install 'vani-io[frames]'; Profile.table gives the same as a table of Arrow"
            raise ImportError(f"frames need pandas: {todo}") from error
        return pd.json_normalize(rows) if rows or name != "extensions" else pd.DataFrame(columns=_EXTENSION)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        if name not in FRAMES:
            raise ValueError(f"a profile has no table {name!r}; there are {', '.join(FRAMES)}")
        if name == "extensions":
            return [asdict(row) for row in extension_rows(self.extensions)]
        return [row.model_dump() for row in getattr(self, name) or ()]


def _arrow_table(rows: Sequence[Mapping[str, Any]]) -> "pa.Table":
    """Rows as an Arrow table with a column per attribute; a column of mixed types becomes text."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and few profiles are shown as tables

    flat_rows = [_flat(row) for row in rows]
    columns = {}
    for name in dict.fromkeys(key for row in flat_rows for key in row):
        values = [row.get(name) for row in flat_rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
