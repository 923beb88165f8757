"""POS008: reads that request bytes past the end of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, by_folder, data_files, listed, target_of, wall_s
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict
from vani.models.run_time import seconds
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class ReadsPastEnd(Rule):
    """Most bytes that reads request are beyond the end of the file.

    Looks at
        Data files whose end is known: bytes of reads beyond it, at least `min_bytes` in the files of one folder
        and at least `min_share` of the requested bytes.
    Why
        Such a request returns nothing, but goes to the server, and the program may mistake the requested length for
        data. Often the size of a buffer was meant to be that of the file, or a file is read before it is written.
    Recommends
        Query the file's size once and read that much, or stop at the first short read; and check that the file contains
        what it should.
    Stays silent when
        Ends of files are not known; few bytes are beyond them, or little in comparison with the bytes read.
    Source
        read(2): a read at or behind the end returns 0. The profile's `past_end` is a lower bound.
    Example
        100,000 reads request 686 MB of a file that stays empty, and no byte arrives.

            while not os.read(fd, 8192): pass    # before: polls the end of the file
            while os.fstat(fd).st_size == 0: time.sleep(1)    # after: waits, then reads once
    """

    id = "POS008"
    name = "reads-past-end"
    family = "posix"
    needs = ("files[].io.past_end.read",)
    settles = ""
    sources = ("read(2)",)

    # Our choice: most of the bytes requested.
    min_share = 0.5
    # Our choice: a buffer of 1 MiB for a smaller file does no harm.
    min_bytes = 2 * MiB

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        items = data_files(
            profile,
            lambda file: bool(
                file.io.past_end.read
                and file.io.bytes.read
                and file.io.past_end.read >= self.min_share * file.io.bytes.read
            ),
        )
        if not items:
            return self.nothing("reads stay within their files, where ends are known")
        findings = [
            self._finding(app, folder, group)
            for app, folder, group in by_folder(items, profile)
            if sum(item.file.io.past_end.read or 0 for item in group) >= self.min_bytes
        ]
        return findings or self.nothing(
            f"less than {format_bytes(self.min_bytes)} are requested beyond the end of files"
        )

    def _finding(self, app: App | None, folder: str, items: list[Item]) -> Finding:
        past = sum(item.file.io.past_end.read or 0 for item in items)
        read = sum(item.file.io.bytes.read or 0 for item in items)
        # If no bytes arrive, all reads are past the end.
        empty = [item for item in items if (item.file.io.past_end.read or 0) >= (item.file.io.bytes.read or 0)]
        before = wall_s(items, app, "read")
        reading = sum(seconds(item.file.io.time_s.read) for item in items)
        gain = None
        if before and empty and reading:
            left = max(0.0, 1 - sum(seconds(item.file.io.time_s.read) for item in empty) / reading)
            gain = Gain(
                metric="read_time_s",
                before_s=before,
                after_s=before * left,
                best_s=before * left,
                worst_s=before,
                method="reads of files that return nothing are not made; low: the program waits for data that has "
                "not been written yet",
            )
        current: dict[str, Value] = {"read_bytes": read, "past_end_bytes": past}
        text = (
            f"{format_bytes(past)} of {format_bytes(read)} ({format_share(past / read)}) that reads of "
            f"{listed(folder, items, app)} request are beyond the end of the file."
        )
        if empty:
            text += (
                f" From {format_count(len(empty))} of the {format_count(len(items))} files no byte is read."
                if len(items) > 1
                else " Not one byte arrives."
            )
        else:
            text += " The gain of shorter requests is not known: supply the time of a run with them."
        return Finding(
            target=target_of(folder, items, app),
            reason=text,
            confidence=0.6,
            touched_s=before,
            recommended={"read_bytes": read - past},
            current=current,
            evidence=[
                entry
                for item in items[:3]
                for entry in (
                    Evidence(f"{item.where}.path", item.file.path),
                    Evidence(f"{item.where}.size", item.file.size),
                    Evidence(f"{item.where}.io.bytes.read", item.file.io.bytes.read),
                    Evidence(f"{item.where}.io.past_end.read", item.file.io.past_end.read),
                )
            ],
            gain=gain,
            apply=comment(
                "in the program: fstat the file once and read its size, or stop at the first short read"
            ),
            files=frozenset(item.file.path for item in items),
        )
