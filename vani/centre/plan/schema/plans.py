"""plan.yaml: which job gets which part of a machine, the expected gain, and what could not be done.

The same inputs give the same bytes: a plan contains no time, and only the machine names it was given.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from vani.centre.plan.schema.scenario import Pieces, Placement, Stages
from vani.schema.advice import Expected
from vani.schema.document import DocumentOfKinds
from vani.schema.model import Model, schema_field
from vani.schema.settings import Option, Settings

# The base of every plan: its inputs, its expected gain, and what could not be done.
#
# The same inputs give the same bytes: a plan contains no time, and only the machine names it was given.

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PlanInput(Model):
    """An input document of the plan."""

    kind: Literal["jobs", "plan", "profile", "snapshot", "system", "scenario", "layout", "trace"] = Field(
        description="kind of input: jobs, current plan, profile of a job, state (snapshot) or description of the "
        "machine, scenario, layout of a file, trace, or store"
    )
    path: str | None = Field(description="path as given; null for an input in memory")
    sha256: str = Field(description="SHA-256 of the file, or of the YAML of an input in memory")


class Left(Model):
    """Something that the plan could not do."""

    name: str = Field(description="item concerned: a job, a file, a node, or `pool`")
    reason: str = Field(description="reason why nothing was assigned")


def expected_effect(
    metric: str, before: float, after: float, method: str, *, speedup: float | None = None,
    ends: tuple[float | None, float | None] = (None, None),
) -> Expected:
    """The expected effect of a plan: by default `after` relative to `before`, without a range."""
    speedup = (after / before if before else None) if speedup is None else speedup
    low, high = ends
    return Expected(metric=metric, before=before, after=after, speedup=speedup, low=low, high=high, method=method)


class Plan(DocumentOfKinds):
    """A plan of any kind; each kind adds its own decisions."""

    schema_: Literal["vani.plan/1"] = schema_field("vani.plan/1")
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of plan")
    inputs: list[PlanInput] = Field(description="documents that the plan was made from")
    expected: Expected | None = Field(
        description="expected effect of the plan; null if before and after cannot be compared"
    )
    unplaced: list[Left] = Field(description="items to which nothing was assigned, and why")
    over_capacity: list[Left] = Field(description="requests that exceed the available capacity")
    no_data: list[Left] = Field(description="missing figures, and the assumptions used instead")
    notes: list[str] = Field(description="remarks needed to interpret the figures")

    @property
    def is_whole(self) -> bool:
        """Whether the plan omits nothing."""
        return not (self.unplaced or self.over_capacity or self.no_data)

    @property
    def caution(self) -> str:
        """Why the plan should not be applied; empty if it should."""
        return ""


# Plans of kind `forward`: which job gets how many I/O nodes.

Policy = Literal["mckp", "static", "process", "zero", "one", "oracle"]
Objective = Literal["sum", "max-min", "proportional"]
Estimate = Literal["near", "nearest", "none"]


class ForwardSettings(Settings):
    """How the I/O nodes of a pool are shared."""

    io_nodes: int = Field(ge=0, le=10_000_000, description="Number of I/O nodes in the pool.")
    policy: Policy = Field("mckp", description="How I/O nodes are shared; mckp is optimal, oracle needs no pool.")
    objective: Objective = Field(
        "sum",
        description="Objective of mckp: sum, the sum of bandwidths; max-min, the least share of its own best that a "
        "job gets, then the sum; proportional, the product of bandwidths.",
    )
    floor: Annotated[Share, Option(metavar="SHARE")] = Field(
        0.0, description="Least share of its own best that each job gets."
    )
    direct: bool = Field(description="Whether jobs may bypass I/O nodes.")
    any_number: bool = Field(
        False,
        description="Allow numbers of I/O nodes that do not divide a job's compute nodes; neighbours still share one.",
    )
    rounding: Literal["half-up", "ceil"] = Field("half-up", description="Rounding in the policies static and process.")
    nodes_per_io_node: Annotated[float | None, Field(gt=0, le=1e9), Option(metavar="R")] = Field(
        None, description="Compute nodes per I/O node of the machine, for the policy static."
    )


class ForwardOptions(ForwardSettings):
    """Options of `vani plan forward`."""

    direct: Annotated[bool | None, Option(("--direct/--no-direct",))] = Field(  # type: ignore[assignment]
        None, description="Whether jobs may bypass I/O nodes; by default as in --system, else yes."
    )
    compare: bool = Field(False, description="Also compute all other policies, for comparison.")
    estimate: Estimate = Field("near", description="Measured patterns to use for a job without a curve.")


class QueueOptions(ForwardOptions):
    """Options of `vani plan forward --replay`."""

    nodes: int | None = Field(
        None, ge=1, le=10_000_000, description="With --replay: compute nodes of the machine; by default as in --system."
    )
    poll: Annotated[float, Field(ge=0, le=1e9), Option(metavar="SECONDS")] = Field(
        0.0,
        description="With --replay: running jobs see a new mapping at the next multiple of this many seconds "
        "(GekkoFWD: 10); at once by default.",
    )


class Allotment(Model):
    """The share of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes of the job")
    io_nodes: Count | None = Field(
        description="number of I/O nodes for this job alone; 0 is direct access or the shared I/O node; null if the "
        "job is unplaced"
    )
    shared: bool = Field(description="true if the job uses the I/O node shared by several jobs")
    bandwidth: Amount | None = Field(description="expected bandwidth in bytes per second; null if there is no figure")
    own_best: Amount | None = Field(
        description="bandwidth that the job would have alone on the pool, bytes per second; null if there is no figure"
    )
    share: Amount | None = Field(description="bandwidth / own_best")
    before: Count | None = Field(description="number of I/O nodes in the current plan; null if unknown")
    source: Literal["measured", "estimated", "none"] = Field(
        description="source of the bandwidths: the job's own curve, curves of similar patterns, or nothing"
    )
    low: Amount | None = Field(description="5th percentile of the bandwidth; null if the scatter is unknown")
    high: Amount | None = Field(description="95th percentile of the bandwidth; null if the scatter is unknown")


class Outcome(Model):
    """The total that a policy gives."""

    policy: Policy | Literal["current"] = Field(
        description="policy by which the jobs share the pool; `current` is the current plan"
    )
    io_nodes: Count = Field(description="number of I/O nodes assigned, including the shared one")
    over: Count = Field(description="number of assigned I/O nodes that exceed the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")
    least_share: Amount | None = Field(
        description="smallest ratio of bandwidth to own best over the jobs; null if there are no figures"
    )
    no_figure: Count = Field(description="number of jobs left out of the sum for lack of a figure")


class PoolWorth(Model):
    """The optimum with another pool; only where it differs from the pool before."""

    io_nodes: Count = Field(description="number of I/O nodes in the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")


class ForwardPlan(Plan):
    """Number of I/O nodes for each job."""

    kind: Literal["forward"] = Field(default="forward", description="kind of plan: sharing of I/O nodes")
    forward: ForwardSettings = Field(description="settings of the request")
    before: Outcome = Field(description="outcome of the current plan, or of `static` if none was given")
    after: Outcome = Field(description="outcome of this plan")
    jobs: list[Allotment] = Field(description="jobs in the order of jobs.yaml")
    one_more: Amount | None = Field(
        description="gain in the sum from one more I/O node, bytes per second; null if the policy is not mckp, or "
        "there is nothing to compare with"
    )
    pools: list[PoolWorth] = Field(description="optimum by pool size, in ascending order (mckp, objective sum)")
    compared: list[Outcome] = Field(description="outcomes of all policies, if requested")


# Plans of kind `replay`: the progress of a queue of jobs when I/O nodes are shared again at each change.

class JobPeriod(Model):
    """Part of a job's life with one number of I/O nodes."""

    start_s: Amount = Field(description="seconds after the first job was submitted")
    seconds: Amount = Field(description="duration, including the time of a change")
    io_nodes: Count = Field(
        description="number of I/O nodes for this job alone; 0 is direct access or the shared I/O node"
    )
    shared: bool = Field(description="true if the job uses the I/O node shared by several jobs")
    bytes: Amount = Field(description="bytes moved")


class QueuedJob(Model):
    """The outcome of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes")
    bytes: Amount = Field(description="bytes read and written")
    submit_s: Amount = Field(description="submission time in seconds")
    start_s: Amount = Field(description="start time in seconds")
    end_s: Amount = Field(description="end time in seconds")
    bandwidth: Amount = Field(description="bytes / seconds from start to end")
    source: Literal["measured", "estimated"] = Field(
        description="source of the bandwidths: the job's own curve, or curves of similar patterns"
    )
    periods: list[JobPeriod] = Field(description="periods with a constant number of I/O nodes, in sequence")


class QueueOutcome(Model):
    """The queue under one policy."""

    policy: Policy = Field(description="policy by which the jobs share the I/O nodes")
    bandwidth: Amount | None = Field(
        description="sum over the jobs of bytes / run time (Bez et al., equation 2), bytes per second; null if not "
        "all jobs can be served"
    )
    makespan_s: Amount | None = Field(description="seconds from the first submission to the last end")
    waited_s: Amount | None = Field(description="mean seconds from a job's submission to its start")
    io_nodes: Count | None = Field(description="maximum number of I/O nodes assigned at the same time")
    over: Count | None = Field(description="number of assigned I/O nodes that exceed the pool")
    late_s: Amount | None = Field(
        description="seconds during which more I/O nodes than the pool has are in use because clients have not yet "
        "seen a new mapping"
    )
    solved: Count | None = Field(description="number of times the set of running jobs changed")
    changes: Count | None = Field(description="number of times the I/O nodes of a running job changed")
    reason: str | None = Field(description="reason why not all jobs can be served; null if they can")


class ReplayPlan(Plan):
    """The progress of the jobs of a queue."""

    kind: Literal["replay"] = Field(default="replay", description="kind of plan: I/O nodes for a queue of jobs")
    forward: ForwardSettings = Field(
        description="settings of the request; nodes_per_io_node is the machine's if none was given"
    )
    nodes: int = Field(ge=1, description="number of compute nodes of the machine")
    poll_s: Amount = Field(
        description="interval in seconds at which running clients read a new mapping; 0 is immediately"
    )
    before: QueueOutcome = Field(description="outcome of `static`, which never changes the number of a running job")
    after: QueueOutcome = Field(description="outcome of this plan")
    jobs: list[QueuedJob] = Field(description="jobs by start time")
    compared: list[QueueOutcome] = Field(description="outcomes of all policies, if requested")


# Plans of kind `path`: the forwarding nodes, storage nodes and targets of each job's I/O.

Capacity = Literal["binding", "eq1"]
Dimension = Literal["iobw", "iops", "mdops"]
LayerName = Literal["forwarding", "storage", "ost"]

AtLeastOne = Annotated[int, Field(ge=1)]


class PathSettings(Settings):
    """How paths are chosen."""

    capacity: Capacity = Field(
        "binding",
        description="Capacity of a node: binding, the scarcest of its free bytes, operations and metadata operations "
        "per second; eq1, AIOT's equation 1 as printed, which counts bytes only.",
    )
    exact: bool = Field(False, description="Compute a maximum flow where Algorithm 1 leaves demand unmet.")
    pack: bool = Field(
        False,
        description="Fill one node before the next: jobs use few nodes and stay apart, but load is less balanced.",
    )
    metadata_share: Annotated[Share | None, Option(metavar="P")] = Field(
        None, description="Metadata share of a request split; by default the job's own, at most 0.9."
    )


class Flow(Model):
    """A part of a job's demand and the nodes that it passes."""

    forwarding: str = Field(description="forwarding node")
    storage: str = Field(description="storage node")
    ost: Count = Field(description="index of the storage target")
    share: Share = Field(description="share of the job's demand")


class MappedNodes(Model):
    """Consecutive compute nodes that use one forwarding node."""

    forwarding: str = Field(description="forwarding node")
    number: Count = Field(description="position among the snapshot's forwarding nodes, from 0")
    first: Count = Field(description="number of the first of these nodes within the job, from 0")
    nodes: AtLeastOne = Field(description="number of compute nodes")
    hosts: str | None = Field(description="node names as a Slurm host list; null if jobs.yaml does not name them")


class RequestSplit(Model):
    """How a forwarding node that jobs share divides its service."""

    forwarding: str = Field(description="forwarding node")
    metadata_share: Share = Field(description="P: metadata and other requests are served in the ratio P : (1 - P)")


class JobPath(Model):
    """The share of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes of the job")
    iobw: Amount | None = Field(description="required bandwidth, bytes per second; null if unknown")
    iops: Amount | None = Field(description="required data operations per second; null if unknown")
    mdops: Amount | None = Field(description="required metadata operations per second; null if unknown")
    binds: Dimension | None = Field(
        description="scarcest resource of the forwarding nodes, relative to the demand; null without demand or peaks"
    )
    flow: Share | None = Field(
        description="share of the demand that nodes can carry over any paths from the job's compute nodes; null "
        "without demand"
    )
    met: Share | None = Field(
        description="share of the demand carried with one forwarding node per compute node: the sum of `flows`"
    )
    bound: Share | None = Field(
        default=None,
        description="upper bound on the share that any mapping with one forwarding node per compute node can carry; "
        "null without demand",
    )
    flows: list[Flow] = Field(description="flows that make up `met`")
    map: list[MappedNodes] = Field(description="forwarding node of each compute node")
    request_split: list[RequestSplit] = Field(
        description="forwarding nodes shared with other jobs that this job fills with metadata operations"
    )
    prefetch_chunk: Count | None = Field(
        description="bytes that the forwarding nodes read ahead of a file (equation 2); null leaves it unchanged"
    )
    stripe_count: AtLeastOne | None = Field(
        description="number of targets of each file that the job creates; null leaves it unchanged"
    )
    stripe_size: AtLeastOne | None = Field(description="stripe size in bytes; null leaves it unchanged")
    dom: AtLeastOne | None = Field(
        default=None,
        description="bytes at the start of each file stored on the metadata target (DoM); null if there are none",
    )
    lines: list[str] = Field(default_factory=list, description="commands and hints that apply these settings")
    kept: list[Left] = Field(description="settings that stay unchanged, and why")


class Balance(Model):
    """Population standard deviation of the loads of a layer / 0.5: 0 all equal, 1 half idle and half full."""

    forwarding: Share | None = Field(description="index of the forwarding nodes; null without loads")
    storage: Share | None = Field(description="index of the storage nodes; null without loads")
    ost: Share | None = Field(description="index of the storage targets; null without loads")


class NodeLoad(Model):
    """The load of a node that carries a part of the plan."""

    name: str = Field(description="name of the node, or index of the target")
    before: Amount = Field(description="load in the snapshot, 0..1")
    after: Amount = Field(
        description="load with the jobs of the plan, 0..1: increased by the largest share of any peak rate that they "
        "use"
    )


class LayerLoads(Model):
    """One layer of the path."""

    layer: LayerName = Field(description="name of the layer")
    nodes: Count = Field(description="number of usable nodes")
    unused: Count = Field(description="number of unusable nodes: not ok, or without figures")
    largest_before: Amount | None = Field(description="largest load in the snapshot; null without loads")
    largest_after: Amount | None = Field(description="largest load with the plan; null without loads")
    loads: list[NodeLoad] = Field(description="loads of the nodes that carry something, in the order of the snapshot")


class PathPlan(Plan):
    """The nodes that each job's I/O passes."""

    kind: Literal["path"] = Field(default="path", description="kind of plan: I/O paths")
    path: PathSettings = Field(description="settings of the request")
    before: Balance = Field(description="load-balance index of each layer in the snapshot")
    after: Balance = Field(description="load-balance index of each layer with the jobs of the plan")
    jobs: list[JobPath] = Field(description="jobs in the order of jobs.yaml")
    layers: list[LayerLoads] = Field(description="loads of the forwarding nodes, storage nodes and targets")


# Plans of kind `place`: the OSTs that will store the stripes of new files.

def _past_weight(text: object) -> float:
    try:
        return float(text.removeprefix("past=") if isinstance(text, str) else text)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("is not a weight; give past=0 to past=1") from None


_Weight = Annotated[float, Field(ge=0, le=1e6), Option(metavar="W")]


class PlaceSettings(Settings):
    """How OSTs are chosen, and how Lustre's own allocator is simulated."""

    method: Literal["fast", "balanced", "tarazu", "lsa"] = Field(
        "fast",
        description="How OSTs are chosen: fast minimises the simulated time, then the load of the fullest OST; "
        "balanced minimises the load of the fullest OST, then of the fullest server; "
        "tarazu is Tarazu's algorithm 1 as printed; lsa is Lustre's own allocator.",
    )
    past_weight: Annotated[Share, BeforeValidator(_past_weight), Option(("--size-weight",), "past=0..1")] = Field(
        1.0, description="Weight of bytes already on an OST, relative to new ones."
    )
    ceiling: Annotated[float, Field(gt=0, le=1), Option(metavar="SHARE")] = Field(
        0.95, description="Fill OSTs up to this share."
    )
    cpu_weight: _Weight = Field(0.5, description="Weight of a server's processors in its load (tarazu).")
    memory_weight: _Weight = Field(0.5, description="Weight of a server's memory in its load (tarazu).")
    turn: Literal["going-on", "random-start"] = Field(
        "going-on",
        description="Where Lustre's round-robin starts for a file: after the previous file's OSTs, or at random.",
    )
    window: Annotated[Share, Option(metavar="SHARE")] = Field(
        0.17,
        description="Difference in free space, as a share of the largest, above which Lustre draws OSTs by free space.",
    )
    seed: int = Field(0, ge=0, lt=1 << 32, description="Seed of Lustre's draws.")
    seeds: int = Field(50, ge=1, le=10_000, description="Number of draws for the range of Lustre's costs.")


class PlacedExtent(Model):
    """The part of a file in one component of its layout."""

    number: Count = Field(description="number of the component, from 1")
    start: Count = Field(description="offset of the first byte in the file")
    end: Count = Field(description="end offset in bytes; for the last component, the expected file size")
    stripe_count: Count = Field(description="number of stripes")
    stripe_size: Count = Field(
        description="stripe size in bytes used to compute `bytes`; for tarazu the paper's own, length / stripes"
    )
    set_stripe_size: Count = Field(
        description="stripe size in bytes that `command` sets: the largest that Lustre accepts"
    )
    osts: list[Count] = Field(description="OST indices in the order of the stripes; empty if Lustre chooses")
    bytes: list[Count] = Field(description="bytes on each of these OSTs")
    size_for: Literal["stated", "regions", "records", "dealing", "paper"] = Field(
        default="stated",
        description="reason for the stripe size: set by the layout; one stripe per process region of a shared file; "
        "complete records of processes that take turns; all OSTs busy while a process writes in order; or Tarazu's, "
        "one contiguous piece per OST",
    )
    on_mdt: Count | None = Field(
        default=None, description="bytes stored on the metadata target (DoM) instead of OSTs; null if stored on OSTs"
    )

    @property
    def is_left(self) -> bool:
        """Whether Lustre chooses its OSTs."""
        return not self.osts and self.on_mdt is None


class PlacedFile(Model):
    """A file to come."""

    path: str = Field(description="path as in jobs.yaml")
    job: str = Field(description="job that creates the file")
    rank: Count | None = Field(description="process that creates the file; null if unknown")
    size: Count = Field(description="expected size in bytes")
    extents: list[PlacedExtent] = Field(description="layout components that the file reaches")
    command: str | None = Field(description="command that creates the file this way; null if Lustre chooses everything")


class TargetUse(Model):
    """The use of one OST by the planned files."""

    index: Count = Field(description="OST index as used by `lfs setstripe -o`")
    oss: str | None = Field(description="server of the target; null if unknown")
    state: Literal["ok", "degraded", "offline"] = Field(description="state in the snapshot")
    used: Count = Field(description="bytes stored before the plan")
    added: Count = Field(description="bytes that the plan adds")
    share: Amount = Field(description="(used + added) / size")


class OstCosts(Model):
    """How even the load is; 1 is ideal."""

    ost_cost: Amount | None = Field(
        description="fill level of the fullest OST / fill level of all OSTs together (Tarazu, equation 4), with "
        "stored bytes weighted by `past_weight`; null without bytes"
    )
    oss_cost: Amount | None = Field(
        description="the same cost for servers; null without bytes, or if the servers are unknown"
    )
    fullest: Amount = Field(
        description="fill level (bytes / size) of the fullest OST, with stored bytes weighted by `past_weight`"
    )
    time_cost: Amount | None = Field(
        default=None,
        description="simulated time to write the files / time with all OSTs always busy; null without bytes or above "
        "2,000 files",
    )


class Range(Model):
    """Spread of many draws."""

    low: Amount = Field(description="minimum")
    median: Amount = Field(description="median")
    high: Amount = Field(description="maximum")


class AllocatorRange(Model):
    """A simulation of Lustre's own allocator by one of its rules."""

    rule: Literal["as-set", "going-on", "random-start", "by-space"] = Field(
        description="allocation rule. as-set: by `turn`, or by free space beyond `window`; the others always apply a "
        "single rule"
    )
    ost_cost: Range = Field(description="range of the cost defined in `after.ost_cost`")
    oss_cost: Range | None = Field(
        description="range of the cost defined in `after.oss_cost`; null if the servers are unknown"
    )
    time_cost: Range | None = Field(default=None, description="range of the cost defined in `after.time_cost`")


class Answer(Model):
    """An answer besides a list of OSTs."""

    name: str = Field(description="measure to take")
    who: Literal["user", "administrator"] = Field(description="person who can take the measure")
    lines: list[str] = Field(description="commands to run")
    ost_cost: Range | None = Field(description="OST cost in simulated draws; null if not simulated")
    time_cost: Range | None = Field(description="time cost in simulated draws; null if not simulated")
    why: str = Field(description="purpose of the measure")


class PlacePlan(Plan):
    """OSTs for the stripes of new files."""

    kind: Literal["place"] = Field(default="place", description="kind of plan: placement of files on OSTs")
    place: PlaceSettings = Field(description="settings of the request")
    now: OstCosts | None = Field(
        description="costs before any of the files is placed; null if stored bytes do not count"
    )
    before: AllocatorRange | None = Field(
        description="costs if Lustre's allocator placed the same files; null if there are no bytes to place"
    )
    after: OstCosts = Field(description="costs of this plan")
    least: Amount | None = Field(
        description="lower bound on the OST cost of any placement of these files, found by counting; null without bytes"
    )
    is_least: bool = Field(description="true if `after.ost_cost` was proved to be minimal")
    pin: bool = Field(
        description="true if setting these OSTs is worth it compared with Lustre's choice; if false, commands, "
        "`vani plan store` and simulations leave the choice to Lustre"
    )
    pin_reason: str = Field(description="reason for `pin`")
    answers: list[Answer] = Field(default_factory=list, description="other measures to consider")
    allocator: list[AllocatorRange] = Field(description="range of costs by allocation rule of Lustre")
    targets: list[TargetUse] = Field(description="use of each target, in ascending order of index")
    files: list[PlacedFile] = Field(description="files in the order of jobs.yaml")

    @property
    def caution(self) -> str:
        return "" if self.pin else f"better left to Lustre: {self.pin_reason}"


# Plans of kind `simulate`: what would happen to the jobs of a scenario.

Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SimulateOptions(Settings):
    """Options of `vani plan simulate`."""

    tolerance: Annotated[float | None, Field(ge=0, le=0.1), Option(metavar="SHARE")] = Field(
        None,
        description="Treat flows as one event if they end within this share of the shortest flow; by default 0, or "
        "0.005 above 2,000 flows.",
    )
    alone: bool = Field(False, description="Also simulate each job alone, for its slowdown.")


class SimulateSettings(Model):
    """Settings of the simulation."""

    seeds: list[Count] = Field(description="seeds for random placement; one run each")
    tolerance: Share = Field(
        description="flows that end within this share of the shortest flow are merged into one event; 0 is exact"
    )
    alone: bool = Field(description="true if each job was also simulated alone")


class SimulatedJob(Model):
    """One job in the run that is the median by its end."""

    name: str = Field(description="name of the job")
    begin_s: Amount = Field(description="start time")
    end_s: Amount | None = Field(description="end time; null if the job never ends")
    io_s: Amount | None = Field(
        description="seconds during which any of the job's processes moves data; null if the job never ends"
    )
    bytes: Amount = Field(description="bytes moved")
    read: Amount | None = Field(
        description="bytes per second while the job reads; null if it does not read or never ends"
    )
    write: Amount | None = Field(
        description="bytes per second while the job writes; null if it does not write or never ends"
    )
    bound: dict[str, Share] = Field(description="share of the processes' I/O time by bottleneck: a stage, or `process`")
    alone_s: Amount | None = Field(default=None, description="duration when simulated alone; null if not requested")
    slowdown: Ratio | None = Field(
        default=None, description="duration with the other jobs / duration alone; null if not requested"
    )


class SimulatedStage(Model):
    """How busy the members of a stage are, from the beginning to the end."""

    kind: str = Field(description="kind of stage: node, io_node, whole, server, target, metadata or burst_buffer")
    members: Count = Field(description="number of members of the stage")
    used: Count = Field(description="number of members that carry any traffic")
    mean: Ratio = Field(description="share of the time in which a member is busy, mean over all members")
    most: Ratio = Field(description="share of the time in which the busiest member is busy")
    busiest: Count = Field(description="number of the busiest member")


class SimulatedVariant(Model):
    """The outcome of one variant."""

    name: str = Field(description="name of the variant; `scenario` if there are no variants")
    stages: Stages = Field(description="flow through the stages: overlapped or serial")
    pieces: Pieces = Field(description="storage of files on their targets: in_turn or contiguous")
    placement: Placement = Field(description="policy by which files are placed on targets")
    plans: list[str] = Field(description="kinds of plans that were applied")
    runs: Count = Field(description="number of runs, one per seed; one if nothing is random")
    makespan_s: Amount | None = Field(description="end of the last job, median of the runs; null if it never ends")
    low_s: Amount | None = Field(description="minimum over the runs; null if none ends")
    high_s: Amount | None = Field(description="maximum over the runs; null if some run never ends")
    read: Amount | None = Field(description="bytes per second of all jobs while any of them reads, median of the runs")
    write: Amount | None = Field(
        description="bytes per second of all jobs while any of them writes, median of the runs"
    )
    ost_cost: Ratio | None = Field(
        description="bytes on the fullest target / mean bytes per target (Tarazu, equation 4), median run; null "
        "without bytes"
    )
    jobs: list[SimulatedJob] = Field(description="jobs in the order of the scenario")
    by_stage: list[SimulatedStage] = Field(description="stages in the order of the data path")
    events: Count = Field(description="number of events of the median run")


class Moment(Model):
    """An interval of time of the last variant."""

    begin_s: Amount = Field(description="start of the interval")
    end_s: Amount = Field(description="end of the interval")
    rates: list[Amount] = Field(description="bytes per second of each job, in the order of `jobs`")
    busy: dict[str, Ratio] = Field(description="busy share of the busiest member of each stage")


class SimulatePlan(Plan):
    """The outcome of a simulation."""

    kind: Literal["simulate"] = Field(default="simulate", description="kind of plan: a simulation, which plans nothing")
    simulate: SimulateSettings = Field(description="settings of the request")
    outcomes: list[SimulatedVariant] = Field(description="results by variant; the first is `before`, the last `after`")
    timeline: list[Moment] = Field(description="intervals of the median run of the last variant, at most 400")
