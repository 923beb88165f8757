"""Facts of Lustre, CephFS and GPFS (Storage Scale) about a mount, and layouts of new files, also of BeeGFS and DAOS.

Of Lustre: targets, space, the default layout, and capabilities of the servers; of CephFS: targets and the default
layout; of GPFS: block size, subblock size, version.

Sources: lfs-df.1 and lfs-getstripe.1 of the Lustre release; the manual's section on self-extending layouts;
`lprocfs_import_seq_show` of the release for `lctl get_param mdc.*.import`. `lfs df` exits with a status other than 0 if
a target does not answer, after printing the others. The manual page of mmlsfs: with `-Y`, fields are separated by
colons and percent-encoded; IBM Storage Scale, "Block size": all data of a file system has the same block size, and if
metadata has another one (`mmcrfs --metadata-block-size`), the pool `system` contains only metadata and all data is in
other pools. docs.ceph.com, File layouts; `ceph osd stat` and `ceph fs ls` of Ceph 16.2.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote

from vani.collect.node import Ask, NoAnswer, ask
from vani.schema.job import Ceph, CephLayout, Gpfs, Lustre, is_below
from vani.systems.layout_commands import family_of, requested
from vani.units import parse_bytes

_OVERSTRIPING: Final = (2, 13)
"""First version in which `-C` works (lfs-setstripe(1))."""


@dataclass(frozen=True)
class Software:
    """Version of the servers, and whether client and servers agree on overstriping; None if unknown.

    `why` states the source, or the reason for missing facts.
    """

    version: str | None
    overstriping: bool | None
    why: str


def read_lustre(folder: str, ask: Ask, data: str | None = None) -> tuple[Lustre, list[str]]:
    """Query `lfs` about the mount at `folder`; also returns reasons for missing answers, one per query.

    Parameters
    ----------
    data
        Folder of the data on that mount, whose default layout is read, because a project may have its
        own. Without it, the mount point's is read.
    """
    problems: list[str] = []
    facts: dict[str, object] = {"dir": folder, **parse_df(_printed(["lfs", "df", folder], ask, problems))}
    for place in dict.fromkeys((data or folder, folder)):
        layout = parse_layout(_printed(["lfs", "getstripe", "-d", place], ask, problems))
        if layout:
            facts |= layout | {"layout_dir": place}
            break
    return Lustre.model_validate(facts), list(dict.fromkeys(problems))


def _printed(command: list[str], ask: Ask, problems: list[str]) -> str:
    """The output of the command, even if it failed, in which case the failure is added to `problems`."""
    try:
        return ask(command)
    except NoAnswer as error:
        problems.append(f"{error}; its output is stored" if error.printed.strip() else str(error))
        return error.printed


def parse_df(text: str) -> dict[str, object]:
    """Count targets and add up space from `lfs df` (in units of 1 KiB)."""
    facts: dict[str, object] = {}
    for kind, key in (("OST", "osts"), ("MDT", "mdts")):
        targets = re.findall(rf"^\S+-{kind}[0-9a-f]{{4}}_UUID\b", text, re.MULTILINE)
        if targets:
            facts[key] = len(targets)
    space = re.findall(r"^\S+-MDT[0-9a-f]{4}_UUID\s+(\d{1,18})\s+\d+\s+(\d{1,18})\b", text, re.MULTILINE)
    if space:
        facts["mdt_capacity"] = sum(int(whole) for whole, _ in space) * 1024
        facts["mdt_free"] = sum(int(free) for _, free in space) * 1024
    summary = re.search(r"^filesystem[_ ]summary:\s+(\d{1,18})\s+\d+\s+(\d{1,18})\b", text, re.MULTILINE)
    if summary:
        facts |= {"capacity": int(summary[1]) * 1024, "free": int(summary[2]) * 1024}
    return facts


def parse_layout(text: str) -> dict[str, object]:
    """Parse the default layout from `lfs getstripe -d`; a composite one as options of `lfs setstripe`."""
    components = re.split(r"^\s*(?:-\s+)?lcme_id:", text, flags=re.MULTILINE)[1:]
    if components:
        return {"layout": " ".join(filter(None, map(_component, _with_extensions(components))))}
    count, size = _value("stripe_count", text), _value("stripe_size", text)
    facts: dict[str, object] = {}
    # 0 means the file system's default, which is what we want to know.
    if count and re.fullmatch(r"-?[1-9]\d*", count):
        facts["stripe_count"] = int(count)
    if size and re.fullmatch(r"[1-9]\d*", size):
        facts["stripe_size"] = int(size)
    return facts


def read_software(device: str, ask: Ask) -> Software:
    """Determine the version of a mount's servers, and whether several objects per target are possible.

    `device` is the mount's, such as `10.0.0.1@o2ib:/scratch`. The features on which client and servers agreed count;
    otherwise the older of both versions. The client's version alone can only show that the feature does not work.
    """
    client, why = None, ""
    try:
        client = parse_version(ask(["lfs", "--version"]))
    except NoAnswer as error:
        why = str(error)
    name = device.rpartition(":/")[2].partition("/")[0] or "*"
    question = ["lctl", "get_param", f"mdc.{name}-*.import"]
    version, why_no_servers = None, ""
    try:
        printed = ask(question)
    except NoAnswer as error:
        printed, why_no_servers = error.printed, str(error)
    versions = re.findall(r"target_version:\s*([0-9.]+)", printed)
    servers = [number for text in versions if (number := parse_version(text)) is not None]
    if servers:
        version = ".".join(map(str, min(servers)))
    agreed = re.findall(r"connect_flags:\s*\[(.*?)\]", printed, re.DOTALL)
    if agreed:
        works = all(re.search(r"\boverstriping\b", flags) for flags in agreed)
        return Software(version, works, " ".join(question))
    if client is not None and client < _OVERSTRIPING:
        return Software(version, False, f"lfs --version: {'.'.join(map(str, client))}, from 2.13 on")
    if client is not None and servers:
        both = f"lfs --version: {'.'.join(map(str, client))}; {' '.join(question)}: {version}; from 2.13 on"
        return Software(version, min(servers) >= _OVERSTRIPING, both)
    if client is not None:
        # A new client may talk to an old server.
        known = f"the client is {'.'.join(map(str, client))}"
        return Software(
            None, None, f"{known}, and the servers' version is not known: {why_no_servers or 'lctl prints nothing'}"
        )
    return Software(version, None, why or "lfs --version does not print it")


def parse_version(text: str) -> tuple[int, ...] | None:
    """The first version in a text: `lfs 2.15.3` is (2, 15, 3)."""
    match = re.search(r"\b(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in match.groups() if part) if match else None


def _with_extensions(components: list[str]) -> list[str]:
    """Merge each self-extending component with its extension space: Lustre shows two, `lfs setstripe` expects one."""
    whole: list[str] = []
    for text in components:
        size, end = _value("extension_size", text), _value(r"lcme_extent\.e_end", text)
        if size and end and whole:
            literal = end.replace("\\", r"\\")
            grown = re.sub(r"(\blcme_extent\.e_end:\s*)\S+", rf"\g<1>{literal}", whole[-1])
            whole[-1] = f"{grown}\n extension_of: {size}\n"
        else:
            whole.append(text)
    return whole


def _component(text: str) -> str:
    end, pattern = _value(r"lcme_extent\.e_end", text), _value("pattern", text)
    if end is None:
        return ""
    words = ["-E", "-1" if end.upper() == "EOF" else end]
    if pattern == "mdt":
        return " ".join([*words, "-L", "mdt"])
    for option, key in (("-z", "extension_of"), ("-c", "stripe_count"), ("-S", "stripe_size"), ("-p", "pool")):
        value = _value(key, text)
        words += [option, value] if value else []
    return " ".join(words)


def _value(key: str, text: str) -> str | None:
    match = re.search(rf"\b(?:lmm_)?{key}:\s*(\S+)", text)
    return match[1] if match else None


def layout_problem(folder: Path, layout: str) -> tuple[str, bool | None] | None:
    """Compare the layout that a folder gives new files with the requested one.

    Returns None if they agree. Otherwise returns a sentence, with False if they differ and None if that is unknown.
    """
    words, place = shlex.split(layout), str(folder)
    known = family_of(words)
    if known is None:
        try:
            return _stripes_problem(parse_layout(ask(["lfs", "getstripe", "-d", place])), requested(layout))
        except NoAnswer as error:
            return f"the layout is not known ({error})", None
    family, wanted = known
    reader = next((line for line in family.readers if shutil.which(line.split()[0])), family.readers[-1])
    try:
        printed = ask([*reader.split(), place])
    except NoAnswer as error:
        return f"the {family.noun} is not known ({error})", None
    now = [match[1] for form in family.forms if (match := re.search(form, printed))]
    if len(now) < len(family.forms):
        return f"the {family.noun} is not known ({' '.join(reader.split()[:3])} names none)", None
    if [*map(_value_of, now)] == [*map(_value_of, wanted)]:
        return None
    return f"the {family.noun} was not applied ({family.has.format(*now)})", False


def _value_of(word: str) -> int | str:
    return parse_bytes(word) if word[0].isdigit() else word


def _stripes_problem(layout: Mapping[str, object], wanted: Mapping[str, int]) -> tuple[str, bool | None] | None:
    if not layout:
        return "the layout is not known (lfs getstripe -d names none)", None
    composite = str(layout.get("layout", ""))
    have: dict[str, object] = {"components": composite.count("-E ")} if composite else dict(layout)
    wrong = [f"{key} {have[key]}, not {value}" for key, value in wanted.items() if have.get(key, value) != value]
    missing = [key for key in wanted if key not in have]
    if "components" in missing or ("components" in have and "components" not in wanted):
        return f"the layout was not applied (lfs getstripe -d shows {composite or layout})", False
    if wrong:
        return f"the layout was not applied (lfs getstripe -d shows {', '.join(wrong)})", False
    return (f"lfs getstripe -d does not show {', '.join(missing)}", None) if missing else None


def read_ceph(folder: str, ask: Ask, data: str | None = None) -> tuple[Ceph, list[str]]:
    """The layout of new files in `data` (else at the mount point `folder`), pools, and number of OSDs.

    Also returns reasons for missing answers. A folder without a layout of its own gives files that of the nearest
    folder above. Users often may not run `ceph`.
    """
    problems: list[str] = []
    facts: dict[str, object] = {"dir": folder}
    place = data or folder
    above = [str(path) for path in (PurePosixPath(place), *PurePosixPath(place).parents) if is_below(str(path), folder)]
    attributes = [*((path, "ceph.dir.layout") for path in above), (place, "ceph.dir.layout.json")]
    layout = next(filter(None, (ceph_layout(*attribute) for attribute in attributes)), None)
    if layout is None:
        problems.append(f"{place} has no ceph.dir.layout that can be read")
    else:
        facts |= {"layout_dir": place, "layout": layout}
    ceph = ["ceph", "--connect-timeout", "5", "--format", "json"]
    try:
        if in_use := re.search(r'"num_in_osds":\s*(\d{1,9})', ask([*ceph, "osd", "stat"])):
            facts["osds"] = int(in_use[1])
        pools = re.findall(r'"data_pools":\s*\[(.*?)\]', ask([*ceph, "fs", "ls"]), re.DOTALL)
        facts["pools"] = re.findall(r'"(.*?)"', " ".join(pools)) or None
    except NoAnswer as error:
        problems.append(str(error))
    return Ceph.model_validate(facts), problems


def ceph_layout(path: str, attribute: str = "ceph.file.layout") -> CephLayout | None:
    """The layout in an extended attribute of a file or folder; None if it has none, and on other file systems."""
    try:
        text = os.getxattr(path, attribute).decode(errors="replace")
    except (OSError, ValueError):
        return None
    number = r"\d{1,18}"
    keys = (("stripe_unit", number), ("stripe_count", number), ("object_size", number), ("pool(?:_name)?", r"[\w.-]+"))
    matches = [re.search(rf'\b{key}"?[=:] ?"?({form})', text) for key, form in keys]
    if None in matches[:3]:
        return None
    values = [None if match is None else match[1] for match in matches]
    return CephLayout.model_validate(dict(zip(CephLayout.model_fields, values, strict=True)))


_FIELDS = {"blockSize": "block_size", "minFragmentSize": "subblock_size"}
_MAX_DIGITS = 18


def read_gpfs(folder: str, device: str, ask: Ask) -> tuple[Gpfs, list[str]]:
    """Query `mmlsfs` about the file system `device` at `folder`; also returns reasons for missing answers."""
    device = PurePosixPath(device).name or device
    problems: list[str] = []
    for program in ("mmlsfs", "/usr/lpp/mmfs/bin/mmlsfs"):
        try:
            facts, failed = parse_mmlsfs(ask([program, device, "-Y"])), False
        except NoAnswer as error:
            problems.append(str(error))
            facts, failed = parse_mmlsfs(error.printed), True
        if facts or not failed:
            gpfs = Gpfs.model_validate({"dir": folder, "device": device, **facts})
            return gpfs, [f"{problems[-1]}; its output is stored"] if failed else []
    return Gpfs(dir=folder, device=device), problems[:1]


def parse_mmlsfs(text: str) -> dict[str, object]:
    """Parse the output of `mmlsfs DEVICE -Y`: sizes in bytes, for the pools with data."""
    lines = [
        [unquote(part) for part in line.split(":")]
        for line in text.splitlines()
        if line.startswith("mmlsfs:")
    ]
    header = next((line for line in lines if "HEADER" in line), None)
    if header is None or "fieldName" not in header or "data" not in header:
        return {}
    name_at, data_at = header.index("fieldName"), header.index("data")
    remarks_at = header.index("remarks") if "remarks" in header else -1
    facts: dict[str, object] = {}
    for line in lines:
        if line is header or len(line) <= max(name_at, data_at):
            continue
        name, data = line[name_at], line[data_at]
        if name in _FIELDS and data.isdecimal() and len(data) <= _MAX_DIGITS:
            pool = line[remarks_at] if 0 <= remarks_at < len(line) else ""
            # There is one line for `system pool` and one for `other pools` if they differ, otherwise a single one.
            if not (pool.startswith("system") and _FIELDS[name] in facts):
                facts[_FIELDS[name]] = int(data)
        elif name == "filesystemVersion" and data:
            facts["version"] = data.split(" ")[0]
    return facts
