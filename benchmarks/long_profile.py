"""What a long profile costs as YAML and as JSON: `python -m benchmarks.long_profile`, processor seconds.

The profile is that of a small trace, with its files repeated under other names and with other numbers, until it is
as long as one of tens of thousands of files. Commands are run on both files, start-up included. Beside them stands what
libyaml, by PyYAML, takes for the same tree, once: Vani's own YAML is faster by far, so JSON gains less on it.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from vani.garbage import collection_paused
from vani.render.profile import FORMATS
from vani.schema.document import read_tree
from vani.schema.profile import Profile

__all__ = ["long_profile", "main"]

_PROFILE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "v3-cm1like-16r.yaml"
_COMMANDS = {
    "advise": ("advise", "PROFILE", "-o", "OUTPUT", "-q"),
    "diff": ("diff", "PROFILE", "PROFILE"),
    "report": ("report", "PROFILE", "-o", "OUTPUT", "--format", "html", "-q"),
}


def long_profile(files: int) -> Profile:
    """A profile of so many files, whose times and sizes differ."""
    chance = random.Random(18)
    small = Profile.load(_PROFILE)
    trees = [one.model_dump(by_alias=True) for one in small.files]
    entries = []
    for number, tree in zip(range(files), cycle(trees), strict=False):
        entry = _varied(tree, chance)
        entry["path"] = f"{tree['path']}.{number:06d}"
        entries.append(entry)
    whole = small.model_dump(by_alias=True) | {"files": entries}
    whole["dataset"]["files"] = files
    return Profile.model_validate(whole)


def _varied(tree: Any, chance: random.Random) -> Any:
    """Times of a copy are other ones: equal lines would be read only once."""
    if isinstance(tree, dict):
        return {key: _varied(value, chance) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_varied(value, chance) for value in tree]
    return tree * chance.uniform(0.9, 1.0) if isinstance(tree, float) else tree


def _spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """Of work that commands do without looking for cycles."""
    with collection_paused():
        began = time.process_time()
        found = work()
        return time.process_time() - began, found


def _of_libyaml(profile: Profile) -> dict[str, float]:
    """What PyYAML takes to write and to read a profile, with the parser and the emitter in C."""
    write, text = _spent(
        lambda: yaml.dump(profile.model_dump(by_alias=True), Dumper=yaml.CSafeDumper, sort_keys=False)
    )
    parse, _ = _spent(lambda: yaml.load(text, Loader=yaml.CSafeLoader))
    return {"write": write, "parse": parse}


def main() -> None:
    """Measure, and print a table; with `--json` the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    profile = long_profile(asked.files)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for kind in FORMATS:
            file = Path(name) / f"profile.{kind}"
            row = found.setdefault(kind, {})
            for _ in range(asked.rounds):
                seconds, text = _spent(lambda kind=kind: FORMATS.render(kind, profile))
                row["write"] = min(row.get("write", seconds), seconds)
                seconds, _tree = _spent(
                    lambda text=text, file=file: read_tree(text, Profile, where=str(file))
                )
                row["parse"] = min(row.get("parse", seconds), seconds)
            file.write_text(text, encoding="utf-8")
            row["mb"] = file.stat().st_size / 1e6
            for command, words in _COMMANDS.items():
                written = {"PROFILE": str(file), "OUTPUT": str(Path(name) / f"{command}.out")}
                arguments = [written.get(word, word) for word in words]
                row[command] = min(succeed([*VANI, *arguments]).cpu_s for _ in range(asked.rounds))
        found["libyaml"] = _of_libyaml(profile)
    for what in found["json"]:
        own, other = found["yaml"][what], found["json"][what]
        unit = "MB" if what == "mb" else "s "
        label = "length" if what == "mb" else what
        library = found["libyaml"].get(what)
        behind = "" if library is None else f" libyaml {library:8.2f} {unit} libyaml/json {library / other:6.2f}"
        print(f"{label:8} yaml {own:8.2f} {unit} json {other:8.2f} {unit} yaml/json {own / other:6.2f}{behind}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
