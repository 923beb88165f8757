"""Plans of kind `place`: the OSTs that will store the stripes of new files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Plan, Share

__all__ = [
    "AllocatorRange",
    "Answer",
    "OstCosts",
    "PlacePlan",
    "PlaceSettings",
    "PlacedExtent",
    "PlacedFile",
    "Range",
    "TargetUse",
]


class PlaceSettings(Model):
    """The question that `vani plan place` answered."""

    method: Literal["balanced", "tarazu", "lsa"] = Field(
        description="how OSTs are chosen: the fullest as empty as possible; Tarazu's algorithm 1 as printed; as "
        "Lustre does"
    )
    past_weight: Share = Field(description="weight of stored bytes relative to new ones")
    ceiling: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        description="share of an OST up to which it is filled"
    )
    cpu_weight: Amount = Field(description="of a server's processors in its load (tarazu)")
    memory_weight: Amount = Field(description="of a server's memory in its load (tarazu)")
    turn: Literal["going-on", "random-start"] = Field(
        description="where Lustre's round-robin starts for a file: after the previous file's OSTs, or at random"
    )
    window: Share = Field(
        description="difference of free space, as a share of the most, beyond which Lustre draws OSTs by free space"
    )
    seed: Count = Field(
        description="of the draws of Lustre's allocator; ranges use this and the following seeds"
    )
    seeds: Count = Field(description="draws of a range")


class PlacedExtent(Model):
    """The part of a file in one component of its layout."""

    number: Count = Field(description="of the component, from 1")
    start: Count = Field(description="offset of its first byte in the file")
    end: Count = Field(description="its end in bytes; expected file size for a last component")
    stripe_count: Count = Field(description="stripes")
    stripe_size: Count = Field(
        description="bytes by which `bytes` are counted; tarazu: the paper's own, length / stripes"
    )
    set_stripe_size: Count = Field(
        description="bytes that `command` sets: the largest that Lustre takes for it"
    )
    osts: list[Count] = Field(description="indexes in the order of stripes; empty: Lustre chooses")
    bytes: list[Count] = Field(description="on each of these OSTs")
    size_for: Literal["stated", "regions", "records", "dealing", "paper"] = Field(
        default="stated",
        description="reason for the stripe size: the layout states it; a stripe is one process's region of a shared "
        "file; a stripe contains complete records of processes that take turns; all OSTs are busy while a process "
        "writes in order; Tarazu's, one contiguous piece per OST",
    )
    on_mdt: Count | None = Field(
        default=None, description="bytes on the metadata target (DoM), without OSTs; null: stored on OSTs"
    )

    @property
    def is_left(self) -> bool:
        """Whether Lustre chooses its OSTs."""
        return not self.osts and self.on_mdt is None


class PlacedFile(Model):
    """A file to come."""

    path: str = Field(description="as in jobs.yaml")
    job: str = Field(description="that creates it")
    rank: Count | None = Field(description="process that creates it; null: not known")
    size: Count = Field(description="bytes that it is expected to reach")
    extents: list[PlacedExtent] = Field(description="components that it reaches")
    command: str | None = Field(description="command that creates it this way; null where Lustre chooses everything")


class TargetUse(Model):
    """The use of one OST by the planned files."""

    index: Count = Field(description="as `lfs setstripe -o` counts them")
    oss: str | None = Field(description="its server; null: not known")
    state: Literal["ok", "degraded", "offline"] = Field(description="from the snapshot")
    used: Count = Field(description="bytes there before")
    added: Count = Field(description="bytes that the plan adds")
    share: Amount = Field(description="(used + added) / size")


class OstCosts(Model):
    """How even the load is; 1 is ideal."""

    ost_cost: Amount | None = Field(
        description="bytes over size of the fullest OST / of all OSTs together (Tarazu, equation 4), past use by its "
        "weight; null: no bytes"
    )
    oss_cost: Amount | None = Field(
        description="the same of the servers; null: no bytes, or servers not known"
    )
    fullest: Amount = Field(description="the largest of the OSTs' bytes over size, past use by its weight")
    time_cost: Amount | None = Field(
        default=None,
        description="predicted time over that with all OSTs busy all the time: files grow side by side, one "
        "component after the other, each as fast as its busiest OST; null: no bytes",
    )


class Range(Model):
    """Spread of many draws."""

    low: Amount = Field(description="the least")
    median: Amount = Field(description="the middle")
    high: Amount = Field(description="the largest")


class AllocatorRange(Model):
    """A simulation of Lustre's own allocator by one of its rules."""

    rule: Literal["as-set", "going-on", "random-start", "by-space"] = Field(
        description="as-set: by `turn`, by free space beyond `window`; the others: always so"
    )
    ost_cost: Range = Field(description="as `after.ost_cost`")
    oss_cost: Range | None = Field(description="as `after.oss_cost`; null: servers not known")
    time_cost: Range | None = Field(default=None, description="as `after.time_cost`")


class Answer(Model):
    """An answer besides a list of OSTs."""

    name: str = Field(description="what to do")
    who: Literal["user", "administrator"] = Field(description="person who can do it")
    lines: list[str] = Field(description="commands")
    ost_cost: Range | None = Field(description="of simulated draws; null: not simulated")
    time_cost: Range | None = Field(description="of simulated draws; null: not simulated")
    why: str = Field(description="its purpose")


class PlacePlan(Plan):
    """OSTs for the stripes of new files."""

    kind: Literal["place"] = Field(default="place", description="what is planned: OSTs of files")
    place: PlaceSettings = Field(description="settings of the request")
    now: OstCosts | None = Field(
        description="before any of the files; null where stored bytes do not count"
    )
    before: AllocatorRange | None = Field(
        description="what Lustre's allocator would do with the same files; null: no bytes to place"
    )
    after: OstCosts = Field(description="this plan")
    least: Amount | None = Field(
        description="lower bound of the OST Cost of any placement of these files, by counting; null: no bytes"
    )
    is_least: bool = Field(description="whether `after.ost_cost` was proved to be minimal")
    pin: bool = Field(description="whether setting these OSTs is worth it, compared with Lustre's choice")
    pin_reason: str = Field(description="reason for pinning or not")
    answers: list[Answer] = Field(default_factory=list, description="other measures")
    allocator: list[AllocatorRange] = Field(description="Lustre's rules side by side")
    targets: list[TargetUse] = Field(description="ascending by index")
    files: list[PlacedFile] = Field(description="in the order of jobs.yaml")
