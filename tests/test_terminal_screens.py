"""The pictures of terminals in the documents show what the commands print today."""

import html
import re

import pytest

from docs.make_terminal_screens import COLUMNS, PICTURES, SCREENS, screen


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SCREENS)
def test_picture_shows_what_the_command_prints(name):
    picture = (PICTURES / f"{name}.svg").read_text()
    shown = "".join(re.findall(r"<text class=\"screen-(?!title)[^>]*>(.*?)</text>", picture))
    printed = screen(name).plain

    assert words(html.unescape(shown)) == words(printed)
    assert max(map(len, printed.splitlines()[1:])) <= COLUMNS
    # A font from the network would show who reads the page.
    assert "url(http" not in picture


def words(text: str) -> str:
    return "".join(text.split())
