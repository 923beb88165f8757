"""A model of a striped file system: who waits for what, and until when. It moves no data.

It is a stand-in for a parallel file system, with figures chosen to be small and round. It says nothing about Lustre.

Everything that can be busy is a clock: the time until which it is reserved. A request reserves its targets and the link
of its node, each for as long as it takes; whoever needs the result sleeps until then.

- A file consists of objects, a target each, by count and size of its stripes. A request costs a target `latency_s`,
  and its bytes at `target_rate`. Writes return at once; a flush and a close wait until the targets have the data.
- An object has a lock. A node that writes to what another node wrote or read last, or reads what it wrote, costs the
  target `lock_s`, and the other node's cache of the file is lost.
- A flush costs each target that has new data of the node `commit_s`.
- A metadata server does one operation after another, `metadata_s` each. To create or remove a file costs `object_s`
  more for each stripe after the first.
- A node keeps `cache_bytes` of what it read and wrote, in whole blocks, and reads ahead where it reads in order.
- Noise: each reservation is longer or shorter by a factor whose logarithm has the standard deviation `noise`. The
  generator is seeded, but what it draws goes to requests in the order in which they arrive.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

MiB = 1 << 20
BLOCK = 64 << 10
"""Bytes of a block of the cache."""
READ_AHEAD = 4 * MiB
MEMORY_RATE = 2e9
"""Bytes per second of a process that copies to the memory of its node."""
NOBODY, SEVERAL = -2, -1
"""Holders of a lock that are no node."""


@dataclass(frozen=True)
class Machine:
    """The figures of a stand-in: bytes, bytes per second, seconds."""

    targets: int
    target_rate: float
    latency_s: float
    client_rate: float
    lock_s: float
    commit_s: float
    metadata_s: float
    object_s: float
    stripe_count: int
    stripe_size: int = MiB
    cache_bytes: int = 64 * MiB
    noise: float = 0.1
    mdt_bytes: int = MiB
    """Most bytes of a file that may be on the metadata server."""

    @property
    def total_rate(self) -> float:
        """Of all targets together."""
        return self.targets * self.target_rate


MACHINES = {
    "few fast targets": Machine(
        targets=4, target_rate=60e6, latency_s=0.001, client_rate=75e6, lock_s=0.003, commit_s=0.002,
        metadata_s=0.001, object_s=0.0005, stripe_count=1,
    ),
    "many slow targets": Machine(
        targets=16, target_rate=16e6, latency_s=0.002, client_rate=64e6, lock_s=0.004, commit_s=0.003,
        metadata_s=0.001, object_s=0.0005, stripe_count=1,
    ),
    "slow metadata": Machine(
        targets=8, target_rate=40e6, latency_s=0.001, client_rate=60e6, lock_s=0.003, commit_s=0.002,
        metadata_s=0.005, object_s=0.003, stripe_count=4,
    ),
}  # fmt: skip
"""Rates are about a hundredth of those of real machines, so that a run of seconds moves 64 MiB."""


def machine_of(name: str) -> Machine:
    """One of `MACHINES`, or for `drawn 7` one whose figures are drawn by the seed 7, between those of these and beyond.

    Raises
    ------
    KeyError
        There is no such machine.
    """
    word, _, seed = name.partition(" ")
    if word != "drawn" or not seed.isdigit():
        return MACHINES[name]
    drawn = random.Random(int(seed))

    def between(least: float, most: float) -> float:
        return float(f"{math.exp(drawn.uniform(math.log(least), math.log(most))):.2g}")

    targets = drawn.choice([4, 6, 8, 12, 16, 24])
    rate = between(12e6, 80e6)
    return Machine(
        targets=targets, target_rate=rate, latency_s=between(0.0005, 0.003), client_rate=between(40e6, 100e6),
        lock_s=between(0.002, 0.006), commit_s=between(0.001, 0.005), metadata_s=between(0.0007, 0.006),
        object_s=between(0.0003, 0.003), stripe_count=drawn.choice([1, 1, 2, 4]),
    )  # fmt: skip


@dataclass(frozen=True)
class Component:
    """A part of a layout: up to byte `end` (None: to the end), `count` stripes (-1: all targets) of `size` bytes."""

    end: int | None
    count: int
    size: int
    offset: int = -1
    on_mdt: bool = False
    targets: tuple[int, ...] = ()
    """Of each stripe; empty: one after another, from `offset` on, or from where it is the turn."""


Layout = tuple[Component, ...]


def layout_of(words: Sequence[str], machine: Machine) -> Layout:
    """The layout that options of `lfs setstripe` ask for (-E, -c, -S, -i, -o, -L).

    Raises
    ------
    ValueError
        An option is not known, or the machine has no such layout.
    """
    given: list[dict[str, str]] = [{}]
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option not in ("-E", "-c", "-S", "-i", "-o", "-L"):
            raise ValueError(f"the stand-in does not know {option}")
        if option == "-E" and given != [{}]:
            given.append({})
        given[-1][option] = value
    layout: list[Component] = []
    for options in given:
        end = bytes_of(options.get("-E", "-1"))
        # 0 is "as the file system has it", and a component takes what it does not say from the one before.
        before = layout[-1] if layout else None
        count = int(options.get("-c", before.count if before else 0)) or machine.stripe_count
        size = bytes_of(options.get("-S", str(before.size) if before else "0")) or machine.stripe_size
        offset, on_mdt = int(options.get("-i", "-1")), options.get("-L") == "mdt"
        on = tuple(int(number) for number in options["-o"].split(",")) if "-o" in options else ()
        count = len(on) or count
        part = Component(None if end == -1 else end, count, size, offset, on_mdt, on)
        if part.on_mdt and (layout or part.end is None or part.end > machine.mdt_bytes):
            raise ValueError(
                f"only a first component of at most {machine.mdt_bytes} bytes may be on the metadata server"
            )
        if not -1 <= part.count <= machine.targets:
            raise ValueError(f"{part.count} stripes, and there are {machine.targets} targets")
        if part.size <= 0 or part.size % BLOCK:
            raise ValueError(f"stripes of {part.size} bytes: no multiple of 64 KiB")
        if not -1 <= part.offset < machine.targets:
            raise ValueError(f"no target {part.offset}")
        if len(set(on)) < len(on) or not all(0 <= number < machine.targets for number in on):
            raise ValueError("a target that is not there, or one twice")
        if layout and (layout[-1].end is None or (part.end is not None and part.end <= layout[-1].end)):
            raise ValueError("components do not follow one another")
        layout.append(part)
    return tuple(layout)


def words_of(layout: Layout) -> list[str]:
    """The options that make this layout."""
    words = []
    for part in layout:
        if len(layout) > 1:
            words += ["-E", str(-1 if part.end is None else part.end)]
        words += ["-c", str(part.count), "-S", str(part.size)]
        words += ["-o", ",".join(map(str, part.targets))] if part.targets else ["-i", str(part.offset)]
        words += ["-L", "mdt"] if part.on_mdt else []
    return words


def bytes_of(text: str) -> int:
    """`4M` as `lfs` takes it: 4194304."""
    units = {"k": 10, "m": 20, "g": 30}
    unit = units.get(text[-1:].lower(), 0)
    return int(text[:-1] if unit else text) << unit


def shares(layout: Layout, targets: int, offset: int, size: int) -> dict[tuple[int, int], int]:
    """Bytes of a request by object: number of the component, and of the stripe in it."""
    bytes_by_object: defaultdict[tuple[int, int], int] = defaultdict(int)
    begin, end = offset, offset + size
    for number, part in enumerate(layout):
        stop = end if part.end is None else min(end, part.end)
        count = targets if part.count < 0 else part.count
        while begin < stop:
            stripe = begin // part.size
            piece = min(stop, (stripe + 1) * part.size) - begin
            bytes_by_object[number, 0 if part.on_mdt else stripe % count] += piece
            begin += piece
    return dict(bytes_by_object)


@dataclass
class File:
    """A file as the model knows it: its layout, the first target of each component, who has the locks."""

    number: int
    layout: Layout
    first: tuple[int, ...]
    holders: dict[tuple[int, int], int] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    """By node: the time at which all that it wrote is on the targets."""
    new: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By node: targets with data that it has not flushed."""
    generations: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By node: times that its cache of this file was lost."""
    next_reads: dict[int, int] = field(default_factory=dict)
    read_until: dict[int, int] = field(default_factory=dict)

    def target(self, key: tuple[int, int], targets: int) -> int:
        """Target of a stripe, by the numbers of its component and of itself in it."""
        part = self.layout[key[0]]
        return part.targets[key[1]] if part.targets else (self.first[key[0]] + key[1]) % targets

    @property
    def objects(self) -> int:
        return sum(0 if part.on_mdt else max(part.count, 1) for part in self.layout[:1])


class Storage:
    """Clocks of a machine. Not safe with threads: one call at a time.

    Parameters
    ----------
    clock
        Seconds of now.
    """

    def __init__(self, machine: Machine, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.machine, self.now = machine, clock
        self._random = random.Random(seed)
        self._targets = [0.0] * machine.targets
        self.stored = [0] * machine.targets
        """Bytes that were written to each target."""
        self._links: defaultdict[int, float] = defaultdict(float)
        self._server = 0.0
        self._caches: defaultdict[int, OrderedDict[tuple[int, int, int], float]] = defaultdict(OrderedDict)
        self._files = 0
        self._next_target = self._random.randrange(machine.targets)

    def draw_anew(self, seed: int | str) -> None:
        """Draw noise and the target of the next file from another seed; files stay where they are."""
        self._random = random.Random(seed)
        self._next_target = self._random.randrange(self.machine.targets)

    def busy_s(self) -> list[float]:
        """Seconds that each target has still to do from now on."""
        now = self.now()
        return [max(0.0, until - now) for until in self._targets]

    def create(self, layout: Layout) -> File:
        """A new file; its objects begin at the next target, unless the layout names one."""
        first = []
        for part in layout:
            first.append(self._next_target if part.offset < 0 else part.offset)
            if part.offset < 0 and not part.on_mdt and not part.targets:
                self._next_target = (
                    self._next_target + (part.count if part.count > 0 else 0)
                ) % self.machine.targets
        self._files += 1
        return File(self._files, layout, tuple(first))

    def metadata(self, objects: int = 1) -> float:
        """Time at which an operation is done that touches so many objects of a file."""
        self._server = self._busy(
            self._server, self.machine.metadata_s + self.machine.object_s * max(0, objects - 1)
        )
        return self._server

    def write(self, node: int, file: File, offset: int, size: int) -> float:
        """Reserve what a write takes; `close` and `flush` give the time at which it is done.

        Returns the time at which the node's memory has the data.
        """
        done = self._moved(node, file, offset, size, reads=False)
        file.written[node] = max([file.written.get(node, 0.0), *done.values()])
        for block in range(-(-offset // BLOCK), (offset + size) // BLOCK):
            self._cache(node, file, block, 0.0)
        return self.now() + size / MEMORY_RATE

    def close(self, node: int, file: File) -> float:
        """Time at which all that a node wrote to a file is on the targets."""
        return file.written.get(node, 0.0)

    def flush(self, node: int, file: File) -> float:
        """Time at which all that a node wrote to a file is on the disks of the targets."""
        done = file.written.get(node, 0.0)
        for target in file.new.pop(node, ()):
            self._targets[target] = self._busy(self._targets[target], self.machine.commit_s)
            done = max(done, self._targets[target])
        return done

    def read(self, node: int, file: File, offset: int, size: int, end: int) -> float:
        """Time at which a node has what it reads; `end` is the end of the file."""
        stop = min(offset + size, end)
        if offset >= stop:
            return 0.0
        in_order = file.next_reads.get(node, 0) == offset
        file.next_reads[node] = stop
        until = stop
        if in_order and file.read_until.get(node, 0) < min(end, stop + READ_AHEAD // 2):
            until = min(end, stop + READ_AHEAD)
            file.read_until[node] = until
        wanted = range(offset // BLOCK, -(-until // BLOCK))
        for begin, length in _runs([block for block in wanted if self._cached(node, file, block) is None]):
            place = begin * BLOCK
            done = self._moved(node, file, place, min(length * BLOCK, end - place), reads=True)
            for block in range(begin, begin + length):
                (key, *_) = shares(file.layout, self.machine.targets, block * BLOCK, 1)
                self._cache(node, file, block, done[key])
        needed = range(offset // BLOCK, -(-stop // BLOCK))
        return max(self._cached(node, file, block) or 0.0 for block in needed)

    def _moved(
        self, node: int, file: File, offset: int, size: int, *, reads: bool
    ) -> dict[tuple[int, int], float]:
        """Time at which each object of a request is done."""
        machine, done = self.machine, {}
        self._links[node] = self._busy(self._links[node], size / machine.client_rate)
        for key, piece in shares(file.layout, machine.targets, offset, size).items():
            part = file.layout[key[0]]
            if part.on_mdt:
                self._server = self._busy(self._server, machine.metadata_s + piece / machine.target_rate)
                done[key] = max(self._server, self._links[node])
                continue
            target = file.target(key, machine.targets)
            cost = machine.latency_s + piece / machine.target_rate + self._lock(node, file, key, reads=reads)
            self._targets[target] = self._busy(self._targets[target], cost)
            if not reads:
                file.new[node].add(target)
                self.stored[target] += piece
            done[key] = max(self._targets[target], self._links[node])
        return done

    def _lock(self, node: int, file: File, key: tuple[int, int], *, reads: bool) -> float:
        """Seconds that it takes to get the lock of an object."""
        holder = file.holders.get(key, NOBODY)
        if holder == node or (reads and holder in (NOBODY, SEVERAL)):
            return 0.0
        file.holders[key] = SEVERAL if reads else node
        if holder == NOBODY:
            return 0.0
        for other in file.generations if holder == SEVERAL else (holder,):
            if other != node and not reads:
                file.generations[other] += 1
                file.read_until[other] = 0
        return self.machine.lock_s

    def _busy(self, until: float, seconds: float) -> float:
        return max(self.now(), until) + seconds * math.exp(self._random.gauss(0.0, self.machine.noise))

    def _cached(self, node: int, file: File, block: int) -> float | None:
        cache, key = self._caches[node], (file.number, file.generations[node], block)
        if key not in cache:
            return None
        cache.move_to_end(key)
        return cache[key]

    def _cache(self, node: int, file: File, block: int, done: float) -> None:
        cache = self._caches[node]
        cache[file.number, file.generations[node], block] = done
        # What is read ahead must not push itself out.
        while len(cache) > max(2 * READ_AHEAD, self.machine.cache_bytes) // BLOCK:
            cache.popitem(last=False)


def _runs(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First block and length of what is consecutive."""
    begin = 0
    for index in range(1, len(blocks) + 1):
        if index == len(blocks) or blocks[index] != blocks[index - 1] + 1:
            yield blocks[begin], index - begin
            begin = index
