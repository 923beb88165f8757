"""Slurm's daemons in a folder, as far as they can be tested without Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.centre.demo.slurm import Cluster
from vani.errors import InputError


@pytest.mark.parametrize(("name", "what"), [("a b", "contains ' '"), ("it's", "cannot quote"), ("long" * 20, "too many for the sockets")])
def test_a_folder_that_slurm_cannot_use_is_refused_before_anything_is_written(name, what):
    folder = Path("/tmp") / name
    with pytest.raises(InputError, match=what):
        Cluster(folder)
    assert not folder.exists()
