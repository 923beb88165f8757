"""profile.yaml: how a workload uses storage, as entities and attributes (tables II to XI of the Vani paper).

An attribute that could not be found is null, never a guess and never 0; `provenance` gives the reason, by attribute
path. Times are null in a profile that was made without reading time stamps (`vani profile --quick`).
"""

from __future__ import annotations

from vani.schema.profile.dataset import Dataset, Excluded, FileEntity, Folder, SizeDistribution
from vani.schema.profile.interfaces import (
    Amplification,
    DataRepresentation,
    Granularity,
    Interface,
    Middleware,
)
from vani.schema.profile.iostats import (
    AccessPattern,
    Bandwidth,
    ByKind,
    ByteCounts,
    CallCost,
    Footprint,
    IOStats,
    KindShares,
    LibraryCall,
    LibraryTime,
    MetadataCost,
    MetadataKinds,
    OpCounts,
    PastEnd,
    Sizes,
    TransferSizes,
)
from vani.schema.profile.patterns import NamePattern
from vani.schema.profile.phases import Dominant, Frequency, Phase, PhaseIO, Repeats
from vani.schema.profile.profile import FRAMES, FrameName, Generator, Profile, TraceEntity
from vani.schema.profile.storage import Mount, NodeLocalStorage, SharedStorage, Storage, TargetUse
from vani.schema.profile.verdict import Matters, Unseen, UnseenKind, Verdict, VerdictCause
from vani.schema.profile.workload import (
    App,
    AppDependency,
    FileCounts,
    FileLevelDependencies,
    JobEntity,
    ProcessDependencies,
    RankBalance,
    Workflow,
)

__all__ = [
    "FRAMES",
    "AccessPattern",
    "Amplification",
    "App",
    "AppDependency",
    "Bandwidth",
    "ByKind",
    "ByteCounts",
    "CallCost",
    "DataRepresentation",
    "Dataset",
    "Dominant",
    "Excluded",
    "FileCounts",
    "FileEntity",
    "FileLevelDependencies",
    "Folder",
    "Footprint",
    "FrameName",
    "Frequency",
    "Generator",
    "Granularity",
    "IOStats",
    "Interface",
    "JobEntity",
    "KindShares",
    "LibraryCall",
    "LibraryTime",
    "Matters",
    "MetadataCost",
    "MetadataKinds",
    "Middleware",
    "Mount",
    "NamePattern",
    "NodeLocalStorage",
    "OpCounts",
    "PastEnd",
    "Phase",
    "PhaseIO",
    "ProcessDependencies",
    "Profile",
    "RankBalance",
    "Repeats",
    "SharedStorage",
    "SizeDistribution",
    "Sizes",
    "Storage",
    "TargetUse",
    "TraceEntity",
    "TransferSizes",
    "Unseen",
    "UnseenKind",
    "Verdict",
    "VerdictCause",
    "Workflow",
]
