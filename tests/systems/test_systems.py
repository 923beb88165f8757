"""Bundled machines give the source of each figure; users describe their machines on top of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from generators.machines import page

from vani.errors import DocumentError, InputError
from vani.schema.document import loads
from vani.schema.system import System
from vani.systems import known_systems, load_system


def figures(tree, path=""):
    """Paths of all numbers and booleans that are set."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from figures(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from figures(value, f"{path}[{index}]")
    elif isinstance(tree, (int, float)) and path not in ("generic", "burst_buffers[0].uses_memory"):
        yield path


def test_machines_of_the_papers_are_bundled():
    papers = {"lassen", "titan", "cetus", "taihulight", "marenostrum4", "grid5000-lustre", "tarazu-testbed"}
    others = {"frontier-orion", "perlmutter", "generic-lustre", "generic-gpfs", "generic-nfs", "tianhe-prototype"}
    assert papers | others <= set(known_systems())


@pytest.mark.parametrize("name", known_systems())
def test_every_figure_has_a_source_and_every_source_a_place(name):
    system = load_system(name)
    tree = system.model_dump()
    assert system.name == name
    assert not [path for path in figures(tree) if system.source_of(path) is None]
    for path, source in system.sources.items():
        place = tree
        for part in re.findall(r"\w+", path):
            place = place[int(part) if part.isdigit() else part]
        # Nulls need a reason.
        is_empty = place is None or (isinstance(place, dict) and not any(place.values()))
        assert is_empty == source.startswith(("not public", "not looked up")), path


@pytest.mark.parametrize("name", known_systems())
def test_only_generic_machines_are_marked_and_cover_every_path(name):
    system = load_system(name)
    assert system.generic == name.startswith("generic-")
    assert (system.file_system_for("/nowhere/at/all") is not None) == system.generic


def test_figures_match_the_papers():
    # Vani paper, section III and tables VIII and IX; Xie et al., section II-B; AIOT, section II-A;
    # Tarazu, section 7.1.1.
    lassen, titan, cetus = load_system("lassen"), load_system("titan"), load_system("cetus")
    assert (lassen.compute.nodes, lassen.compute.gpus_per_node) == (795, 4)
    assert lassen.file_systems[0].capacity == 24 * 2**50
    assert lassen.file_system_for("/p/gpfs1/user/x").max_bandwidth.read == 64e9
    assert lassen.node_local().bandwidth_per_node.write == 32e9
    assert (titan.file_systems[0].servers, titan.file_systems[0].targets, titan.forwarding.io_nodes) == (
        144,
        1008,
        172,
    )
    assert (cetus.file_systems[0].targets, cetus.forwarding.compute_nodes_per_io_node) == (336, 128)
    assert cetus.file_systems[0].block_size == 32 * cetus.file_systems[0].subblock_size
    taihulight = load_system("taihulight")
    assert [(f.servers, f.targets) for f in taihulight.file_systems] == [(12, 12), (144, 432), (4, 12)]
    assert taihulight.compute.nodes * taihulight.compute.cores_per_node == 10_649_600
    testbed = load_system("tarazu-testbed").file_systems[0]
    assert (testbed.targets, testbed.capacity) == (7 * 5, 350 * 2**30)


def test_new_figures_are_those_of_the_sites_documents():
    # Each written down from the document that the description cites, not from the description.
    flash, disks = load_system("lumi").file_systems
    assert (flash.targets, flash.servers, flash.metadata_targets, disks.targets, disks.servers) == (72, 72, 4, 32, 16)
    flare, daos, gecko = load_system("aurora").file_systems
    assert (flare.targets, flare.metadata_targets, gecko.targets, gecko.metadata_targets) == (160, 40, 32, 12)
    assert (flare.capacity, flare.max_bandwidth.read, daos.servers) == (91e15, 650e9, 1024)
    work = load_system("archer2").file_system_for("/work/e05/e05/me/out")
    assert (work.targets, work.stripe_count, work.stripe_size) == (12, 1, 2**20)
    capstor, iopsstor, _ = load_system("alps").file_systems
    assert (capstor.max_bandwidth.read, capstor.max_bandwidth.write) == (1.19e12, 1.09e12)
    assert (capstor.servers, iopsstor.servers, iopsstor.max_bandwidth.write) == (80, 20, 393e9)
    scratch = load_system("juwels").file_systems[0]
    assert (scratch.capacity, scratch.block_size) == (21e15, 8 * 2**20)
    fugaku = load_system("fugaku")
    assert (fugaku.compute.nodes, fugaku.node_local().capacity_per_node) == (158_976, 87 * 2**30)
    performance, capacity = load_system("frontier-orion").file_systems[0].pools
    assert (performance.capacity, performance.max_bandwidth.read) == (11.5e15, 10e12)
    assert (capacity.capacity, capacity.max_bandwidth.write) == (679e15, 4.6e12)


def test_four_machines_describe_their_metadata_targets_for_small_files():
    known = {
        name
        for name in known_systems()
        for disk in load_system(name).file_systems
        if None not in (disk.metadata_targets, disk.dom_size, disk.metadata_free)
    }
    assert known == {"biohub", "derecho", "expanse", "lumi"}


def test_every_rule_of_a_site_has_a_reason_and_an_existing_pool():
    for name in known_systems():
        for disk in load_system(name).file_systems:
            for rule in disk.striping_rules:
                assert rule.reason, name
                assert rule.pool is None or rule.pool in {pool.name for pool in disk.pools}, name


def test_a_site_that_asks_to_keep_its_layout_is_named():
    kept = {
        name
        for name in known_systems()
        for disk in load_system(name).file_systems
        if disk.layout_policy == "keep"
    }
    assert kept == {"frontier-orion"}


def test_page_of_machines_matches_the_descriptions():
    written = (Path(__file__).resolve().parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
    assert written == page(), "run `make docs`, or `python docs/generators/machines.py`"


def test_the_beginning_of_a_name_suggests_the_machine():
    with pytest.raises(InputError, match="did you mean 'tianhe-prototype'"):
        load_system("Tianhe")
    with pytest.raises(InputError, match=r"known are alps, .*; or name a YAML file"):
        load_system("nowhere-at-all")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        InputError, match=r"'lasen'; did you mean 'lassen'"
    ) as raised:
        load_system("lasen")
    assert raised.value.exit_code == 2


def test_a_file_overrides_its_base_field_by_field(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: vani.system/2\nname: mine\nbase: lassen\ncompute: {nodes: 32}\nfile_systems:\n"
        "- {name: scratch, type: lustre, mounts: [/scratch]}\n"
        "- name: gpfs1\n  max_bandwidth: {read: 9.0e+9}\n  capacity: null\n"
        "sources: {compute.nodes: counted}\n"
    )
    system, lassen = load_system(path), load_system("lassen")
    assert (system.name, system.base, system.compute.nodes) == ("mine", "lassen", 32)
    assert system.compute.cores_per_node == lassen.compute.cores_per_node
    assert [f.name for f in system.file_systems] == ["scratch", "gpfs1"]
    gpfs = system.file_systems[1]
    assert (gpfs.type, gpfs.mounts, gpfs.capacity) == ("gpfs", ["/p/gpfs1"], None)
    assert (gpfs.max_bandwidth.read, gpfs.max_bandwidth.write) == (9e9, 64e9)
    assert system.burst_buffers == lassen.burst_buffers
    assert system.source_of("compute.nodes") == "counted"
    assert system.source_of("compute.memory_per_node") == lassen.sources["compute"]
    assert system.source_of("file_systems[1].max_bandwidth.read") == "mine.yaml"
    assert (
        system.source_of("file_systems[1].max_bandwidth.write")
        == lassen.sources["file_systems[0].max_bandwidth"]
    )
    assert system.source_of("file_systems[0].type") == "mine.yaml"


def test_a_base_may_be_a_file_with_a_base(tmp_path):
    (tmp_path / "a.yaml").write_text("schema: vani.system/2\nbase: titan\ncompute: {nodes: 7}\n")
    (tmp_path / "b.yaml").write_text("schema: vani.system/2\nbase: a.yaml\nname: b\n")
    system = load_system(tmp_path / "b.yaml")
    assert (system.name, system.compute.nodes, system.file_systems[0].targets) == ("b", 7, 1008)
    assert system.source_of("compute.nodes") == "a.yaml"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("base: mine.yaml\n", "mine.yaml: its bases are circular"),
        ("base: lasen\n", "mine.yaml: base: no machine and no file is called 'lasen'; did you mean 'lassen'"),
        ("base: 7\nname: x\n", "mine.yaml:2: base is 7; accepted: text"),
        (
            "base: lassen\nfile_systems:\n- name: gpfs1\n  targtes: 4\n",
            "mine.yaml:5: unknown key 'targtes' in file_systems[0]",
        ),
        ("base: lassen\nfile_systems: null\n", "mine.yaml:3: file_systems is null; accepted: a list"),
        ("base: lassen\nsources: 3\n", "mine.yaml:3: sources is 3; accepted: a mapping"),
        ("compute: {nodes: 1}\n", "mine.yaml:1: key 'name' is missing at the top; add it"),
    ],
)
def test_fault_in_an_override_is_named(tmp_path, text, expected):
    path = tmp_path / "mine.yaml"
    path.write_text("schema: vani.system/2\n" + text)
    with pytest.raises(DocumentError, match=re.escape(expected)):
        load_system(path)


def test_path_belongs_to_the_longest_mount():
    system = loads(
        "schema: vani.system/2\nname: x\n"
        "file_systems:\n- {name: root, type: nfs, mounts: [/]}\n"
        "- {name: a, type: lustre, mounts: [/p, /q/]}\n"
        "- {name: b, type: gpfs, mounts: [/p/b]}\n"
        "burst_buffers:\n- {name: shm, kind: node_local, type: tmpfs, dir: /dev/shm}\n"
        "- {name: nvme, kind: node_local, type: nvme, dir: /mnt/bb/$USER}\n",
        System,
    )
    held = {
        "/p": "a",
        "/p/x": "a",
        "/pp/x": "root",
        "/p/b/x": "b",
        "/p/bb": "a",
        "/q/x": "a",
        "/p/../q": "a",
        "/x": "root",
    }
    assert {path: system.file_system_for(path).name for path in held} == held
    for path in ("/dev/shm/x", "/mnt/bb/me/x"):
        assert system.file_system_for(path) is None
        assert system.burst_buffer_for(path) is not None
    assert system.burst_buffer_for("/mnt/bbb") is None
    assert system.file_system("lustre").name == "a"
    assert system.file_system("lustre", under="/p/b/x") is None
    assert system.file_system("lustre", under="/p/x").name == "a"
    assert system.file_system("beegfs") is None
