"""Plain English in all texts of the repository: counts of translated words and phrases, which may only fall.

If you remove some, lower their ceiling; 0 forbids the phrase. Write what an English-speaking engineer would say
instead.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CODE = ("vani", "schema", "analyzers", "advisors", "packaging")
PAGES = ("docs", "examples", "README.md", "CONTRIBUTING.md", "SECURITY.md")
SUFFIXES = {".py", ".md", ".html", ".yaml", ".yml", ".service", ".env", ""}
WITHOUT = {"vendor", "__pycache__", "test_english.py"}
DATA = {"06-twenty-runs/runs"}  # profiles written by an earlier version

# Phrases: ceiling of their number in the code, and in the pages.
CEILINGS: dict[str, tuple[int, int]] = {
    "tell | tells | telling | told": (0, 0),
    "holds | holding": (12, 1),
    "lies on | lie on | lies in | lie in | lies below | lies within | lie within": (0, 0),
    "lies beside | lie beside | lies above | lies there | lie there | lies near | lie near": (0, 0),
    "one behind the other": (0, 0),
    "nobody": (3, 0),
    "in vain": (0, 0),
    "all the same": (0, 0),
    "win | wins | won": (2, 0),
    "takes in | could be won | is won": (0, 0),
    "as it stands | as they stand": (0, 0),
    "whose run | whose runs": (4, 1),
    "asked for | asks for | ask for": (1, 1),
    "is that of | are those of": (17, 0),
    "of which": (31, 8),
    "anew": (3, 0),
    "stands for | stand for | stands in | stand in": (0, 1),
    "beside": (25, 0),
    "says nothing | says so | says which | says what | says why | says how": (1, 0),
    "whatever": (9, 0),
    "as far as": (10, 1),
    "who loses | who costs | what nobody": (0, 0),
    "held against | hold a | hold the": (0, 0),
    "goes on | go on": (0, 0),
    "plays what | is played | are played": (0, 0),
    "is there already | are there already | there any more": (2, 0),
    "jobs to come | files to come | runs to come": (0, 0),
    "hands out | handed out | hand out": (0, 0),
    "is looked at | are looked at | was looked at | were looked at": (0, 0),
    "in force | without a word | left alone": (0, 0),
    "mend | mends | mended": (0, 0),
    "anybody | somebody | everybody | whoever | lest": (1, 1),
    "is no multiple of | is no absolute path": (0, 0),
    "is of nothing | leads to nothing | brings near": (0, 0),
    "when it began | when it begins": (5, 0),
}

# Letters and digits are kept, and so are signs that make a word a name or a call; everything else becomes a
# blank.
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789_([-'"
_BLANKED = bytes(
    code if bytes([code]) in _KEPT else code + 32 if 65 <= code <= 90 else 32 for code in range(256)
)


@cache
def words_of(parts: tuple[str, ...]) -> bytes:
    """All words of these files, separated by blanks; links below `vani` are not followed."""
    paths = [
        path
        for part in parts
        for path in ([ROOT / part] if (ROOT / part).is_file() else sorted((ROOT / part).rglob("*")))
        if path.suffix in SUFFIXES and WITHOUT.isdisjoint(path.parts)
        and not (path.suffix == ".yaml" and any(data in str(path.parent) for data in DATA))
    ]
    return b"\n".join(path.read_bytes().translate(_BLANKED) for path in paths if path.is_file())


def counted(phrases: str, parts: tuple[str, ...]) -> int:
    return sum(words_of(parts).count(f" {phrase.strip()} ".encode()) for phrase in phrases.split("|"))


@pytest.mark.parametrize("words", CEILINGS)
def test_no_text_has_more_of_a_translated_phrase_than_before(words):
    code, pages = CEILINGS[words]
    found = counted(words, CODE), counted(words, PAGES)
    assert found[0] <= code, f"{words}: {found[0]} in the code; say it plainly ({code} may be there)"
    assert found[1] <= pages, f"{words}: {found[1]} in the pages; say it plainly ({pages} may be there)"
