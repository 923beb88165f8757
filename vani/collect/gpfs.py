"""Facts of GPFS (Storage Scale) about a mount: block size, subblock size, version.

Sources: the manual page of mmlsfs: with `-Y`, fields are separated by colons and percent-encoded; IBM Storage Scale,
"Block size": all data of a file system has the same block size, and if metadata has another one (`mmcrfs
--metadata-block-size`), the pool `system` contains only metadata and all data is in other pools.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote

from vani.collect.probe import Ask, NoAnswer
from vani.schema.job import Gpfs

_FIELDS = {"blockSize": "block_size", "minFragmentSize": "subblock_size"}
_MOST_DIGITS = 18


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
        if name in _FIELDS and data.isdecimal() and len(data) <= _MOST_DIGITS:
            pool = line[remarks_at] if 0 <= remarks_at < len(line) else ""
            # There is one line for `system pool` and one for `other pools` if they differ, otherwise a single one.
            if not (pool.startswith("system") and _FIELDS[name] in facts):
                facts[_FIELDS[name]] = int(data)
        elif name == "filesystemVersion" and data:
            facts["version"] = data.split(" ")[0]
    return facts
