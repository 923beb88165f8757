"""Facts of the Lustre client about a mount: targets, space, the default layout, and capabilities of its servers.

Sources: lfs-df.1 and lfs-getstripe.1 of the Lustre release; the manual's section on self-extending layouts;
`lprocfs_import_seq_show` of the release for `lctl get_param mdc.*.import`. `lfs df` exits with a status other than 0 if
a target does not answer, after printing the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vani.collect.probe import Ask, NoAnswer
from vani.schema.job import Lustre

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
    for option, key in (
        ("-z", "extension_of"),
        ("-c", "stripe_count"),
        ("-S", "stripe_size"),
        ("-p", "pool"),
    ):
        value = _value(key, text)
        words += [option, value] if value else []
    return " ".join(words)


def _value(key: str, text: str) -> str | None:
    match = re.search(rf"\b(?:lmm_)?{key}:\s*(\S+)", text)
    return match[1] if match else None
