"""What the Lustre client says about a mount: targets, space and the default layout.

Sources: lfs-df.1 and lfs-getstripe.1 of the Lustre release. `lfs df` ends with a status other than 0 if one target
does not answer, after it has printed the others.
"""

from __future__ import annotations

import re

from vani.collect.command import Ask, NoAnswer
from vani.schema.job import Lustre

__all__ = ["parse_df", "parse_layout", "read_lustre"]


def read_lustre(folder: str, ask: Ask, data: str | None = None) -> tuple[Lustre, list[str]]:
    """Ask `lfs` about the mount at `folder`; with why there is no answer, per question.

    Parameters
    ----------
    data
        Folder on that mount where the data lies, whose default layout is asked for: a project may have one of its
        own. That of the mount point is taken where it has none to tell.
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
    """What the command printed, also where it failed: `problems` then tells."""
    try:
        return ask(command)
    except NoAnswer as error:
        problems.append(f"{error}; what it printed is kept" if error.printed.strip() else str(error))
        return error.printed


def parse_df(text: str) -> dict[str, object]:
    """Count targets and sum up space from `lfs df` (in units of 1 KiB)."""
    facts: dict[str, object] = {}
    for kind, key in (("OST", "osts"), ("MDT", "mdts")):
        found = re.findall(rf"^\S+-{kind}[0-9a-f]{{4}}_UUID\b", text, re.MULTILINE)
        if found:
            facts[key] = len(found)
    summary = re.search(r"^filesystem[_ ]summary:\s+(\d+)\s+\d+\s+(\d+)", text, re.MULTILINE)
    if summary:
        facts |= {"capacity": int(summary[1]) * 1024, "free": int(summary[2]) * 1024}
    return facts


def parse_layout(text: str) -> dict[str, object]:
    """Read the default layout from `lfs getstripe -d`; a composite one as options of `lfs setstripe`."""
    components = re.split(r"^\s*(?:-\s+)?lcme_id:", text, flags=re.MULTILINE)[1:]
    if components:
        return {"layout": " ".join(filter(None, map(_component, components)))}
    count, size = _value("stripe_count", text), _value("stripe_size", text)
    facts: dict[str, object] = {}
    # 0 is "as the file system has it", which is what was asked.
    if count and re.fullmatch(r"-?[1-9]\d*", count):
        facts["stripe_count"] = int(count)
    if size and re.fullmatch(r"[1-9]\d*", size):
        facts["stripe_size"] = int(size)
    return facts


def _component(text: str) -> str:
    end, pattern = _value(r"lcme_extent\.e_end", text), _value("pattern", text)
    if end is None:
        return ""
    words = ["-E", "-1" if end.upper() == "EOF" else end]
    if pattern == "mdt":
        return " ".join([*words, "-L", "mdt"])
    for option, key in (("-c", "stripe_count"), ("-S", "stripe_size"), ("-p", "pool")):
        value = _value(key, text)
        words += [option, value] if value else []
    return " ".join(words)


def _value(key: str, text: str) -> str | None:
    match = re.search(rf"\b(?:lmm_)?{key}:\s*(\S+)", text)
    return match[1] if match else None
