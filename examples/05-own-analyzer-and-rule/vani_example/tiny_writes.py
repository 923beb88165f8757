"""EXA001: many small writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.rule import Evidence, Finding, Rule, Target, Verdict
from vani.units import KiB

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class TinyWrites(Rule):
    """Most writes are smaller than a page of memory.

    Looks at
        The median size of the workload's writes.
    Why
        Every write is a system call, and on a parallel file system often a message, at any size.
    Recommends
        A larger buffer.
    Stays silent when
        Nothing is written, or half of the writes have at least `enough` bytes.
    Source
        An example: this rule comes from nowhere, and a real one must not.
    Example
        1,000 writes of 100 bytes each.
    """

    id = "EXA001"
    name = "tiny-writes"
    family = "example"
    sources = ("none: an example",)
    # Size of a page of memory on most machines.
    enough = 4 * KiB

    def check(self, profile: Profile, system: System) -> Verdict:
        del system
        sizes = profile.workflow.io.transfer_size.write
        if sizes is None or sizes.p50 is None:
            return "nothing is written"
        if sizes.p50 >= self.enough:
            return f"half of the writes have at least {self.enough} bytes"
        return [
            Finding(
                target=Target("job"),
                reason=f"Half of the writes have at most {sizes.p50} bytes; collect them in a buffer.",
                confidence=0.5,
                touched_s=profile.workflow.io.time_s.write,
                recommended={"buffer_bytes": self.enough},
                current={"median_write_bytes": sizes.p50},
                evidence=[Evidence("workflow.io.transfer_size.write.p50", sizes.p50)],
            )
        ]
