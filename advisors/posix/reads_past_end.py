"""POS008: reads that request bytes past the end of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import Group, by_folder, data_files
from vani.advisors.rule import Finding, Gain, Rule, Verdict
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
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
    needs = ("files[].io.past_end.read",)
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
            return "most reads stay within their files, where ends are known"
        findings = [
            self._finding(group)
            for group in by_folder(items, profile)
            if group.total("io.past_end.read") >= self.min_bytes
        ]
        return findings or f"less than {format_bytes(self.min_bytes)} are requested beyond the end of files"

    def _finding(self, group: Group) -> Finding:
        past, read = int(group.total("io.past_end.read")), int(group.total("io.bytes.read"))
        # If no bytes arrive, all reads are past the end.
        empty = group.of(i for i in group.items if (i.io.past_end.read or 0) >= (i.io.bytes.read or 0))
        before, reading, gain = group.wall_s("read"), group.seconds("io.time_s.read"), None
        if empty.items and reading:
            left = before * max(0.0, 1 - empty.seconds("io.time_s.read") / reading)
            gain = Gain.at_best(
                "read_time_s",
                before,
                after=left,
                best=left,
                method="reads of files that return nothing are not made; low: the program waits for data that has "
                "not been written yet",
            )
        text = (
            f"{format_bytes(past)} of {format_bytes(read)} ({format_share(past / read)}) that reads of {group.words} "
            "request are beyond the end of the file."
        )
        if not empty.items:
            text += " The gain of shorter requests is not known: supply the time of a run with them."
        elif len(group.items) > 1:
            some, files = format_count(len(empty.items)), format_count(len(group.items))
            text += f" From {some} of the {files} files no byte is read."
        else:
            text += " Not one byte arrives."
        return Finding(
            **group.affected,
            reason=text,
            confidence=0.6,
            touched_s=before,
            recommended={"read_bytes": read - past},
            current={"read_bytes": read, "past_end_bytes": past},
            evidence=group.figures("path", "size", "io.bytes.read", "io.past_end.read"),
            gain=gain,
            apply="in the program: fstat the file once and read its size, or stop at the first short read",
        )
