"""Make the pictures of terminal screens in `docs/tour.md` again, from runs in this repository.

python -m docs.make_terminal_screens
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.terminal import on_terminal

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "images"
COLUMNS = 80
STORY, CHECK = "vani/demo/striping", "examples/ci"
# Picture: the folder that the session starts in, the command before the picture, and the one in it.
SCREENS = {
    "terminal-profile": (STORY, None, "vani profile before/shared-write --job job.yaml -o profile.yaml"),
    "terminal-advise": (
        STORY,
        "vani profile before/shared-write --job job.yaml -o profile.yaml",
        "vani advise profile.yaml --system system.yaml -o advice.yaml",
    ),
    "terminal-check": (CHECK, "vani profile traces/after/heat -o after.yaml", "vani check after.yaml"),
}


def main() -> int:
    """Write every picture."""
    for name in SCREENS:
        (PICTURES / f"{name}.svg").write_text(picture_of(screen(name)))
    return 0


def screen(name: str) -> Text:
    """What the terminal shows, with its colours."""
    folder, before, command = SCREENS[name]
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "session"
        shutil.copytree(ROOT / folder, place)
        environment = {"XDG_CACHE_HOME": f"{temporary}/cache", "TERM": "xterm-256color"}
        for typed in filter(None, (before, command)):
            words = [Path(sys.executable).with_name("vani"), *shlex.split(typed)[1:]]
            _, output = on_terminal(words, place, environment=environment, columns=COLUMNS)
    # The bar of progress erases its line at the end.
    shown = output.rpartition("\x1b[2K")[2].rstrip()
    return Text(f"$ {command}\n", "bold").append_text(Text.from_ansi(shown))


def picture_of(text: Text) -> str:
    """An SVG that loads no font from the network."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True)
    console.print(text)
    template = re.sub(r" *@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="", code_format=template, unique_id="screen")


if __name__ == "__main__":
    sys.exit(main())
