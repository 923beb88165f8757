"""Plans of kind `place`: the OSTs that will store the stripes of new files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Plan, Share
from vani.schema.model import Model


class PlaceSettings(Model):
    """The question that `vani plan place` answered."""

    method: Literal["balanced", "tarazu", "lsa"] = Field(
        description="method of choosing OSTs: minimal filling of the fullest OST, Tarazu's algorithm 1 as printed, or "
        "the method of Lustre"
    )
    past_weight: Share = Field(description="weight of bytes already stored, relative to new bytes")
    ceiling: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        description="share of an OST that may be filled at most"
    )
    cpu_weight: Amount = Field(description="weight of a server's processors in its load (tarazu)")
    memory_weight: Amount = Field(description="weight of a server's memory in its load (tarazu)")
    turn: Literal["going-on", "random-start"] = Field(
        description="starting point of Lustre's round-robin for a file: after the OSTs of the previous file, or random"
    )
    window: Share = Field(
        description="difference in free space, as a share of the largest, above which Lustre chooses OSTs weighted by "
        "free space"
    )
    seed: Count = Field(
        description="seed for the random choices of Lustre's allocator; ranges use this and the following seeds"
    )
    seeds: Count = Field(description="number of random draws for a range")


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
        description="predicted time / time with all OSTs always busy; assumes that files grow in parallel, one "
        "component after the other, each as fast as its busiest OST; null without bytes",
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
    pin: bool = Field(description="true if setting these OSTs is worth it compared with Lustre's choice")
    pin_reason: str = Field(description="reason for `pin`")
    answers: list[Answer] = Field(default_factory=list, description="other measures to consider")
    allocator: list[AllocatorRange] = Field(description="range of costs by allocation rule of Lustre")
    targets: list[TargetUse] = Field(description="use of each target, in ascending order of index")
    files: list[PlacedFile] = Field(description="files in the order of jobs.yaml")
