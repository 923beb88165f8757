"""A profile's text, parsed once, and access to the parts that commands need.

Checking every attribute of 50,000 files takes longer than most commands need for their work. Therefore rules get a
profile with the files of the most I/O time, and tables get some attributes of all files. Only these parts are checked.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from vani.schema.advice import JudgedFiles
from vani.schema.dataset_facts import FormatAttributes
from vani.schema.document import collection_paused, read_bytes, read_tree, text_of, validate
from vani.schema.profile import (
    AccessPattern,
    ByKind,
    ByteCounts,
    FileEntity,
    IOStats,
    OpCounts,
    Profile,
    TransferSizes,
)
from vani.schema.profile.iostats import AtLeastOne, Bytes, Count
from vani.schema.profile.storage import Access, Role

Column = tuple[str, ...]
"""Keys below an entry of `files`: `("size",)`, `("io", "ops")`, or deeper `("io", "ops", "read")`."""


@dataclass(frozen=True, slots=True, eq=False)
class IOSummary:
    """Some of the I/O statistics of a file: see `IOStats`."""

    bytes: ByteCounts
    ops: OpCounts
    time_s: ByKind
    transfer_size: TransferSizes
    access_pattern: AccessPattern | None


@dataclass(frozen=True, slots=True, eq=False)
class FileSummary:
    """Some facts of a profile about a file: see `FileEntity`."""

    path: str
    format: str | None
    size: Bytes | None
    role: Role | None
    access: Access
    processes: Count
    io: IOSummary
    format_attributes: FormatAttributes | None = None
    stripe_count: AtLeastOne | None = None
    stripe_size: AtLeastOne | None = None
    object_size: AtLeastOne | None = None


ListedFile: TypeAlias = FileEntity | FileSummary
"""A file as far as a table shows it."""


class ProfilePart(NamedTuple):
    """A profile with the files of the most I/O time."""

    profile: Profile
    positions: tuple[int, ...] | None
    """Positions of the files in the whole list, ascending; None where the profile has all files."""
    judged: JudgedFiles | None
    """Number of files, and their share of the I/O time of all listed files; None where the profile has all files."""


class SavedProfile:
    """The bytes of a profile. `where` is the name that errors give it."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        self.where = where

    @classmethod
    def read(cls, path: str | Path) -> "SavedProfile":
        """Read a file or a pipe; raises DocumentError if that fails."""
        return cls(read_bytes(path), str(path))

    @cached_property
    def sha256(self) -> str:
        """The digest of the bytes."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def text(self) -> str:
        """The bytes as text; raises DocumentError if they are not UTF-8."""
        return text_of(self.content, self.where)

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """The profile as a plain tree; raises DocumentError if it is neither YAML nor JSON, or is another document.
        """
        with collection_paused():
            return read_tree(self.text, Profile, where=self.where)

    @property
    def files(self) -> list[Any]:
        """The entries of `files`, unchecked; empty if `files` is not a list."""
        files = self.tree.get("files")
        return files if isinstance(files, list) else []

    def profile(self) -> Profile:
        """The whole profile; raises DocumentError if it is invalid."""
        with collection_paused():
            return validate(dict(self.tree), Profile, text=self.text, where=self.where)

    def most_important(self, count: int | None) -> ProfilePart:
        """The profile with the `count` files of the most I/O time, or all files if `count` is None or a time is
        unknown.

        Raises
        ------
        DocumentError
            The profile is invalid. Omitted files are not checked.
        """
        times = None if count is None or len(self.files) <= count else _io_times(self.files)
        if count is None or times is None:
            return ProfilePart(self.profile(), None, None)
        positions, share = most_important(times, count)
        tree = {**self.tree, "files": [self.files[position] for position in positions]}
        try:
            with collection_paused():
                profile = Profile.model_validate(tree)
        except ValidationError:
            self.profile()  # raises an error with the position in the whole list
            raise
        judged = JudgedFiles(listed=len(times), judged=count, io_time_share=min(1.0, share))
        return ProfilePart(profile, positions, judged)

    def file_summaries(self) -> list[FileSummary]:
        """The facts about all files that tables show, in their order; raises DocumentError if a value is invalid."""
        try:
            with collection_paused():
                return TypeAdapter(list[FileSummary]).validate_python(self.files)
        except ValidationError:
            self.profile()
            raise

    def file_columns(self, columns: Collection[Column]) -> list[dict[str, Any]]:
        """All entries of `files` in their order, with their paths and at least the wanted columns.

        Raises
        ------
        DocumentError
            A value of these columns is not valid.
        """
        wanted = {("path",), *(column[:2] if column[0] == "io" else column[:1] for column in columns if column)}
        ordered = [column for column in columns_in_order() if column in wanted]
        try:
            with collection_paused():
                for column in ordered:
                    _check(column, self.files)
                return [_only(entry, ordered) for entry in self.files]
        except (ValidationError, KeyError, TypeError):
            # A key that may be absent, or a value that is not valid.
            return [file.model_dump(by_alias=True) for file in self.profile().files]


def most_important(times: Sequence[float], count: int) -> tuple[tuple[int, ...], float]:
    """Positions (ascending) of the `count` largest times, preferring the first of equal times, and their share of the
    sum.
    """
    order = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    positions = tuple(sorted(order[:count]))
    total = sum(times)
    return positions, sum(times[position] for position in positions) / total if total else 1.0


def columns_in_order() -> Iterator[Column]:
    """The keys of a file and of its `io`, in the order of documents."""
    for name in FileEntity.model_fields:
        yield (name,)
        if name == "io":
            yield from (("io", below) for below in IOStats.model_fields)


def _io_times(files: Sequence[Any]) -> list[float] | None:
    """`io.time_s.total` of each file; None if any is not a number."""
    try:
        times = [file["io"]["time_s"]["total"] for file in files]
    except (KeyError, TypeError):
        return None
    return times if all(type(time) in (int, float) for time in times) else None


def _check(column: Column, files: Sequence[Any]) -> None:
    """Raise ValidationError, KeyError or TypeError unless a column is present and valid in all files."""
    field = (FileEntity if len(column) == 1 else IOStats).model_fields[column[-1]]
    kind: Any = field.annotation
    for limit in field.metadata:
        kind = Annotated[kind, limit]
    values = [file[column[0]] if len(column) == 1 else file["io"][column[1]] for file in files]
    TypeAdapter(list[kind]).validate_python(values)


def _only(entry: Mapping[str, Any], columns: Sequence[Column]) -> dict[str, Any]:
    """A file reduced to these columns."""
    tree = {column[0]: entry[column[0]] for column in columns if len(column) == 1}
    of_io = {column[1]: entry["io"][column[1]] for column in columns if len(column) == 2}
    return tree | {"io": of_io} if of_io else tree
