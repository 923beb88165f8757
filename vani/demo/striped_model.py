"""A model of a striped file system: which request waits for what, and until when. It moves no data.

It is a stand-in for a parallel file system, with small, round figures. It says nothing about Lustre.

Every resource is a clock: the time until which it is reserved. A request reserves its targets and the link of its node,
each for as long as it needs them. A process that needs the result sleeps until then.

- A file consists of objects on one target each, given by the number and size of its stripes. A request costs a target
  `latency_s` plus its bytes at `target_rate`. Writes return immediately; a flush and a close wait until the targets
  have the data.
- An object has a lock. If a node writes to an object that another node wrote or read last, or reads one that another
  wrote, it costs the target `lock_s`, and a write invalidates the other node's cache of the file.
- A flush costs `commit_s` on each target with new data from the node.
- A metadata server does one operation after another, `metadata_s` each. Creating or removing a file costs `object_s`
  more for each stripe after the first.
- A node caches `cache_bytes` of data that it read or wrote, in whole blocks, and reads ahead if it reads in order.
- Noise: each reservation is multiplied by a factor whose logarithm has the standard deviation `noise`. The
  generator is seeded, but requests draw from it in the order in which they arrive.
"""

import math
import random
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

MiB = 1 << 20
BLOCK = 64 << 10
"""Bytes of a cache block."""
READ_AHEAD = 4 * MiB
MEMORY_RATE = 2e9
"""Bytes per second that a process copies to the memory of its node."""
NOBODY, SEVERAL = -2, -1
"""Lock holders that are not a single node."""


@dataclass(frozen=True)
class Machine:
    """The figures of a stand-in, in bytes, bytes per second and seconds."""

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
    """Most bytes of a file on the metadata server."""

    @property
    def total_rate(self) -> float:
        """Bytes per second of all targets together."""
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
"""Stand-ins by name. Their rates are about a hundredth of those of real machines: 64 MiB take seconds."""


def machine_of(name: str) -> Machine:
    """One of `MACHINES`, or, for `drawn 7`, a machine with random figures from seed 7, in a wider range than these.

    Raises
    ------
    KeyError
        There is no machine of that name.
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
    """A part of a layout: `count` stripes (-1: all targets) of `size` bytes up to byte `end` (None: end of file)."""

    end: int | None
    count: int
    size: int
    offset: int = -1
    on_mdt: bool = False
    targets: tuple[int, ...] = ()
    """Target of each stripe. Empty: successive targets from `offset`, or from the next one in turn."""


Layout = tuple[Component, ...]


def layout_of(words: Sequence[str], machine: Machine) -> Layout:
    """The layout for options of `lfs setstripe` (-E, -c, -S, -i, -o, -L).

    Raises
    ------
    ValueError
        An option is unknown, or the machine cannot have the layout.
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
        # 0 is the file system's default. A component inherits missing options from the previous one.
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
    """The options of `lfs setstripe` for a layout."""
    words = []
    for part in layout:
        if len(layout) > 1:
            words += ["-E", str(-1 if part.end is None else part.end)]
        words += ["-c", str(part.count), "-S", str(part.size)]
        words += ["-o", ",".join(map(str, part.targets))] if part.targets else ["-i", str(part.offset)]
        words += ["-L", "mdt"] if part.on_mdt else []
    return words


def bytes_of(text: str) -> int:
    """Parse a size as `lfs` does: `4M` is 4194304."""
    units = {"k": 10, "m": 20, "g": 30}
    unit = units.get(text[-1:].lower(), 0)
    return int(text[:-1] if unit else text) << unit


def shares(layout: Layout, targets: int, offset: int, size: int) -> dict[tuple[int, int], int]:
    """Bytes of a request by object, given as (component, stripe)."""
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
    """A file in the model: its layout, the first target of each component, and the lock holders."""

    number: int
    layout: Layout
    first: tuple[int, ...]
    holders: dict[tuple[int, int], int] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    """Time at which everything that a node wrote is on the targets, by node."""
    new: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Targets with unflushed data of a node, by node."""
    generations: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Number of times that a node's cache of this file was invalidated, by node."""
    next_reads: dict[int, int] = field(default_factory=dict)
    read_until: dict[int, int] = field(default_factory=dict)

    def target(self, key: tuple[int, int], targets: int) -> int:
        """Target of an object, given as (component, stripe)."""
        part = self.layout[key[0]]
        return part.targets[key[1]] if part.targets else (self.first[key[0]] + key[1]) % targets

    @property
    def objects(self) -> int:
        return sum(0 if part.on_mdt else max(part.count, 1) for part in self.layout[:1])


class Storage:
    """The clocks of a machine. Not thread-safe.

    Parameters
    ----------
    clock
        Returns the current time in seconds.
    """

    def __init__(self, machine: Machine, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.machine, self.now = machine, clock
        self._random = random.Random(seed)
        self._targets = [0.0] * machine.targets
        self.stored = [0] * machine.targets
        """Bytes written to each target."""
        self._links: defaultdict[int, float] = defaultdict(float)
        self._server = 0.0
        self._caches: defaultdict[int, OrderedDict[tuple[int, int, int], float]] = defaultdict(OrderedDict)
        self._files = 0
        self._next_target = self._random.randrange(machine.targets)

    def draw_anew(self, seed: int | str) -> None:
        """Draw noise and the target of the next file from another seed. Existing files stay in place."""
        self._random = random.Random(seed)
        self._next_target = self._random.randrange(self.machine.targets)

    def busy_s(self) -> list[float]:
        """Seconds of outstanding work of each target."""
        now = self.now()
        return [max(0.0, until - now) for until in self._targets]

    def create(self, layout: Layout) -> File:
        """Create a file. Its objects start at the next target unless the layout names one."""
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
        """Completion time of a metadata operation that touches `objects` objects."""
        self._server = self._busy(
            self._server, self.machine.metadata_s + self.machine.object_s * max(0, objects - 1)
        )
        return self._server

    def write(self, node: int, file: File, offset: int, size: int) -> float:
        """Reserve the resources of a write. `close` and `flush` return its completion time.

        Return the time at which the node's memory has the data.
        """
        done = self._moved(node, file, offset, size, reads=False)
        file.written[node] = max([file.written.get(node, 0.0), *done.values()])
        for block in range(-(-offset // BLOCK), (offset + size) // BLOCK):
            self._cache(node, file, block, 0.0)
        return self.now() + size / MEMORY_RATE

    def close(self, node: int, file: File) -> float:
        """Time at which everything that a node wrote to a file is on the targets."""
        return file.written.get(node, 0.0)

    def flush(self, node: int, file: File) -> float:
        """Time at which everything that a node wrote to a file is on the targets' disks."""
        done = file.written.get(node, 0.0)
        for target in file.new.pop(node, ()):
            self._targets[target] = self._busy(self._targets[target], self.machine.commit_s)
            done = max(done, self._targets[target])
        return done

    def read(self, node: int, file: File, offset: int, size: int, end: int) -> float:
        """Time at which a node has the data that it reads; `end` is the size of the file."""
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

    def _moved(self, node: int, file: File, offset: int, size: int, *, reads: bool) -> dict[tuple[int, int], float]:
        """Completion time of a request on each object."""
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
        """Seconds to get the lock of an object."""
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
        # Blocks that were read ahead must not evict each other.
        while len(cache) > max(2 * READ_AHEAD, self.machine.cache_bytes) // BLOCK:
            cache.popitem(last=False)


def _runs(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First block and length of each run of consecutive blocks."""

    begin = 0
    for index in range(1, len(blocks) + 1):
        if index == len(blocks) or blocks[index] != blocks[index - 1] + 1:
            yield blocks[begin], index - begin
            begin = index
