"""A command ends immediately, whatever it loaded."""

import subprocess
import sys


def test_loaded_objects_are_frozen_at_exit():
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 5000))\n"
        "sys.argv = ['vani', '--help']\n"
        "from vani.__main__ import main\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "True"
