"""When I/O takes place, in one line."""

from __future__ import annotations

from report_inputs import golden

from vani.render.answers import when


def test_share_of_metadata_is_of_time():
    assert when(golden("v3-cm1like-16r")).startswith("1.12 MB read from 547 ms on, for 86.3 ms (opening files takes 48 % of the phase's I/O time)")
