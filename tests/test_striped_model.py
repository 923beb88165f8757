"""The model of the imitated striped file system: where bytes are, how long targets are busy, who waits."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from vani.demo.striped_model import (
    BLOCK,
    MACHINES,
    READ_AHEAD,
    Machine,
    MiB,
    Storage,
    layout_of,
    shares,
    words_of,
)

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "closed-loop"

QUIET = Machine(
    targets=4, target_rate=10 * MiB, latency_s=0.01, client_rate=1000 * MiB, lock_s=0.5, commit_s=0.2, metadata_s=0.1,
    object_s=0.05, stripe_count=1, cache_bytes=16 * MiB, noise=0.0,
)  # fmt: skip


@pytest.fixture
def storage():
    return Storage(QUIET, seed=0, clock=lambda: 0.0)


def file_in(storage, *words):
    return storage.create(layout_of(words, storage.machine))


def of_bytes(layout, targets, offset, size):
    """Brute force: byte by byte, in units of 64 KiB."""
    found = {}
    for place in range(offset, offset + size, BLOCK):
        number, part = next((n, p) for n, p in enumerate(layout) if p.end is None or place < p.end)
        count = targets if part.count < 0 else part.count
        key = number, 0 if part.on_mdt else place // part.size % count
        found[key] = found.get(key, 0) + BLOCK
    return found


def test_bytes_per_target_agree_with_counting_one_by_one():
    draw = random.Random(4)
    for _ in range(200):
        words, end, parts = [], 0, draw.randint(1, 3)
        for number in range(parts):
            end += draw.randint(1, 40) * BLOCK
            words += [
                "-E",
                "-1" if number == parts - 1 else str(end),
                "-c",
                str(draw.choice([-1, 1, 2, 3, 4])),
            ]
            words += ["-S", str(draw.randint(1, 8) * BLOCK)]
            words += ["-L", "mdt"] if number == 0 and parts > 1 and end <= MiB and draw.random() < 0.5 else []
        layout = layout_of(words, QUIET)
        offset, size = draw.randint(0, 200) * BLOCK, draw.randint(1, 200) * BLOCK
        assert shares(layout, 4, offset, size) == of_bytes(layout, 4, offset, size), words
        assert layout_of(words_of(layout), QUIET) == layout


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["-c", "5"], "there are 4 targets"),
        (["-S", "100K"], "no multiple of 64 KiB"),
        (["-i", "4"], "no target 4"),
        (["-p", "flash"], "does not know -p"),
        (["-E", "2M", "-c", "1", "-E", "1M", "-c", "2"], "do not follow"),
        (["-E", "2M", "-L", "mdt", "-E", "-1", "-c", "1"], "at most 1048576 bytes"),
    ],
)
def test_a_layout_that_the_machine_does_not_have_is_refused(words, what):
    with pytest.raises(ValueError, match=what):
        layout_of(words, QUIET)


def test_data_on_one_target_waits_and_data_on_four_does_not(storage):
    for words, seconds in (("-c 1 -S 1M", 4 * (0.01 + 0.1)), ("-c 4 -S 1M", 0.01 + 0.1)):
        storage = Storage(QUIET, seed=0, clock=lambda: 0.0)
        file = file_in(storage, *words.split())
        for number in range(4):
            storage.write(0, file, number * MiB, MiB)
        assert storage.close(0, file) == pytest.approx(seconds)


def test_file_with_a_fixed_first_target_waits_for_that_target(storage):
    first, same, other = (file_in(storage, "-c", "1", "-i", target) for target in ("2", "2", "3"))
    for file in (first, same, other):
        storage.write(0, file, 0, MiB)
    assert [storage.close(0, file) for file in (first, same, other)] == pytest.approx([0.11, 0.22, 0.11])


def test_files_begin_on_successive_targets(storage):
    assert len({file_in(storage, "-c", "1").first[0] for _ in range(4)}) == 4


def test_link_of_a_node_is_the_limit_if_its_targets_are_faster():
    storage = Storage(replace(QUIET, client_rate=5 * MiB), seed=0, clock=lambda: 0.0)
    file = file_in(storage, "-c", "4")
    storage.write(0, file, 0, 4 * MiB)
    assert storage.close(0, file) == pytest.approx(4 / 5)


def test_a_change_of_the_writer_costs_and_the_same_writer_again_does_not(storage):
    file = file_in(storage, "-c", "2", "-S", "1M")
    for node, offset, more in ((0, 0, 0.0), (0, 2, 0.0), (1, 4, 0.5), (1, 5, 0.0), (0, 0, 0.5)):
        before = storage.close(node, file), max(storage.close(0, file), storage.close(1, file))
        storage.write(node, file, offset * MiB, MiB)
        if offset != 5:
            assert storage.close(node, file) - before[1] == pytest.approx(0.11 + more)
        else:
            # The other object, which has not been written yet.
            assert storage.close(node, file) == before[0]


def test_readers_share_a_lock_and_a_writer_takes_it_from_all_of_them(storage):
    file = file_in(storage, "-c", "1")
    storage.write(0, file, 0, MiB)
    first = storage.read(1, file, 0, MiB, MiB)
    second = storage.read(2, file, 0, MiB, MiB)
    assert (first, second) == pytest.approx((0.11 + 0.61, 0.11 + 0.61 + 0.11))
    storage.write(0, file, 0, BLOCK)
    assert storage.close(0, file) == pytest.approx(second + 0.01 + 0.1 / 16 + 0.5)
    assert storage.read(1, file, 0, MiB, MiB) > storage.close(0, file)


def test_cached_bytes_of_a_node_are_free_until_they_are_evicted(storage):
    file = file_in(storage, "-c", "1")
    storage.write(0, file, 0, MiB)
    assert storage.read(0, file, 0, MiB, MiB) == 0.0
    busy = storage.read(1, file, 0, MiB, MiB)
    assert storage.read(1, file, 0, MiB, MiB) == busy
    large = file_in(storage, "-c", "1")
    storage.write(1, large, 0, 16 * MiB)
    assert storage.read(1, file, 0, MiB, MiB) > busy


def test_reading_in_order_reads_ahead_and_jumping_does_not(storage):
    file = file_in(storage, "-c", "4", "-S", "1M")
    end = 3 * READ_AHEAD
    # 5 MiB on four targets: the first one has two of them.
    first = storage.read(0, file, 0, MiB, end)
    assert first == pytest.approx(0.01 + 0.2)
    assert storage.read(0, file, MiB, MiB, end) == pytest.approx(0.01 + 0.1)
    jump = storage.read(0, file, 2 * READ_AHEAD, MiB, end)
    assert storage.read(0, file, 2 * READ_AHEAD + 2 * MiB, MiB, end) > jump - 0.2
    assert file.read_until[0] <= READ_AHEAD + 2 * MiB


def test_flush_waits_only_for_new_data(storage):
    file = file_in(storage, "-c", "1")
    storage.write(0, file, 0, MiB)
    assert storage.flush(0, file) == pytest.approx(0.11 + 0.2)
    assert storage.flush(0, file) == storage.close(0, file)
    assert storage.flush(1, file) == 0.0


def test_operations_queue_at_the_metadata_server_and_stripes_cost_more(storage):
    assert [storage.metadata(), storage.metadata(4), storage.metadata()] == pytest.approx([0.1, 0.35, 0.45])
    assert file_in(storage, "-c", "4").objects == 4
    small = file_in(storage, "-E", "64K", "-L", "mdt", "-E", "-1", "-c", "1")
    assert small.objects == 0
    storage.write(0, small, 0, BLOCK)
    assert storage.close(0, small) == pytest.approx(0.45 + 0.1 + 1 / 160)


def test_time_that_has_passed_is_not_waited_for_again():
    now = [0.0]
    storage = Storage(QUIET, seed=0, clock=lambda: now[0])
    file = file_in(storage, "-c", "1")
    storage.write(0, file, 0, MiB)
    now[0] = 10.0
    storage.write(0, file, 0, MiB)
    assert storage.close(0, file) == pytest.approx(10.11)


def test_noise_is_seeded_and_has_the_documented_size():
    def seconds(seed):
        storage = Storage(replace(QUIET, noise=0.1), seed, clock=lambda: 0.0)
        ends = [0.0, *(storage.metadata() for _ in range(2000))]
        return [after - before for before, after in pairwise(ends)]

    assert seconds(1) == seconds(1) != seconds(2)
    times = sorted(seconds(1))
    assert times[1000] == pytest.approx(0.1, rel=0.02)
    # 16 % of a normal distribution are above one standard deviation.
    assert times[1680] == pytest.approx(0.1 * 2.718281828**0.1, rel=0.02)


def test_the_machines_differ_as_their_names_say():
    fast, many, slow = MACHINES.values()
    assert fast.targets < slow.targets < many.targets
    assert fast.target_rate > slow.target_rate > many.target_rate
    assert slow.metadata_s >= 5 * max(fast.metadata_s, many.metadata_s)


@pytest.fixture
def lfs():
    loader = importlib.machinery.SourceFileLoader("lfs_stand_in", str(EXAMPLE / "lfs"))
    spec = importlib.util.spec_from_loader("lfs_stand_in", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("words", ["", "-c 4 -S 4M -i 1", "-E 64K -L mdt -E 8M -c 1 -E -1 -c -1 -S 4M"])
def test_output_of_lfs_recreates_the_same_layout(lfs, words):
    own = words_of(layout_of(words.split(), QUIET)) if words else []
    again = lfs.options_of(lfs.printed(own))
    assert layout_of(again, QUIET) == layout_of(own, QUIET)
