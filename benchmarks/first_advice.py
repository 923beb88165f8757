"""`python -m benchmarks.first_advice`: is the first advice the known cure? Judged on inputs whose cure is known.

It needs `../shared/cases` and takes some three minutes. `first_advice.yaml` has the right advice of each input. An
input and the same program after its remedy are a pair. Pairs are printed in two halves, assigned by a checksum of
their name: a rule is changed to please the first half, and judged on the second.

- **right**: the first recommendation is one of the named rules and says what it must, no word and no rule appears that
  must not. Without named rules, silence is right.
- **half**: a named rule is among the recommendations, or silence was right and all recommendations are of severity low.
- **wrong**: all else, a profile that cannot be made among them.

Recommendations of severity info have no number on the screen and do not count, nor does the rule on whether I/O
matters (MAT001).
"""

from __future__ import annotations

import gzip
import re
import sys
import tarfile
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Final

import yaml

import vani
from benchmarks.data import SHARED, markdown
from vani.errors import VaniError
from vani.schema.advice import Recommendation

CASES: Final = SHARED / "cases"
EXPECTED: Final = Path(__file__).with_suffix(".yaml")
MACHINE: Final = "generic-lustre"
VERDICTS: Final = ("right", "half", "wrong")
_PART_OF_PAIR: Final = re.compile(r"(-after|-again|-all|-view|-linktime)?(-recorder|-strace)?(\.\w+)*$")


def half_of(name: str) -> int:
    """The half, 0 or 1, of an input; an input and the same program after its remedy have the same half."""
    return zlib.crc32(_PART_OF_PAIR.sub("", name).encode()) % 2


def unpacked(source: Path, folder: Path) -> Path:
    """The input itself, unpacked into a folder if it is compressed."""
    if source.suffix == ".tgz":
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        return folder / source.stem
    if source.suffix == ".gz":
        plain = folder / source.stem
        plain.write_bytes(gzip.decompress(source.read_bytes()))
        return plain
    return source


def advice_on(source: Path, folder: Path) -> list[Recommendation]:
    """The numbered recommendations, the first one first."""
    profile = vani.profile(unpacked(source, folder), store=folder / "store")
    given = vani.advise(profile, system=MACHINE).recommendations
    return [entry for entry in given if entry.rule != "MAT001" and entry.severity != "info"]


def judged(given: list[Recommendation], expected: dict[str, Any]) -> str:
    """Right, half or wrong."""
    rules = [entry.rule for entry in given]
    first = expected.get("first", [])
    if not first:
        if not rules:
            return "right"
        return "half" if all(entry.severity == "low" for entry in given) else "wrong"
    texts = ["\n".join([entry.reason, *entry.apply]) for entry in given]
    if not set(first) & set(rules):
        return "wrong"
    is_right = (
        rules[0] in first
        and all(re.search(words, texts[0]) for words in expected.get("says", []))
        and not any(re.search(words, text) for words in expected.get("never", []) for text in texts)
        and not set(expected.get("without", [])) & set(rules)
    )
    return "right" if is_right else "half"


def results() -> dict[str, tuple[str, str]]:
    """The verdict and the numbered rules by input."""
    found = {}
    for name, expected in yaml.safe_load(EXPECTED.read_text(encoding="utf-8")).items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                given = advice_on(CASES / name, Path(folder))
            except VaniError as error:
                found[name] = ("wrong", str(error))
                continue
            found[name] = (judged(given, expected), " ".join(entry.rule for entry in given) or "nothing")
    return found


def table(found: dict[str, tuple[str, str]]) -> list[str]:
    """The table as lines of Markdown."""
    rows = []
    for half, words in enumerate(("chosen on", "judged on")):
        counts = Counter(verdict for name, (verdict, _) in found.items() if half_of(name) == half)
        rows.append((words, *(f"{counts[verdict]} of {counts.total()}" for verdict in VERDICTS)))
    return markdown(("half", "right", "half right", "wrong"), rows)


def tables() -> dict[str, list[str]]:
    """The table of docs/accuracy.md."""
    return {"first advice": table(results())}


def main() -> int:
    """Print the verdict on each input, and the table; return status 2 if there are no inputs."""
    if not CASES.is_dir():
        print(f"there are no inputs at {CASES}", file=sys.stderr)
        return 2
    found = results()
    for half in (0, 1):
        for name, (verdict, rules) in sorted(found.items(), key=lambda row: VERDICTS.index(row[1][0])):
            if half_of(name) == half:
                print(half, f"{verdict:5}", f"{name:34}", rules)
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
