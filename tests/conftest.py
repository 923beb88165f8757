"""Fixtures for all tests."""

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import invented
import pytest
from hypothesis import given, strategies

# Starting the tests in the background or with nohup makes them, and everything they start, ignore signals.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden profiles anew; read the difference before committing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of invented inputs, and give everything in this run a separate cache.

    The user's own cache is neither read nor filled, since every profile would examine all stores in it. Workers
    share what they decode.
    """
    # As the command `vani` does.
    gc.set_threshold(200_000, 50, 50)
    # Compiling Vani and the tests again takes a third of the time of each process that a test starts.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    invented.choose(config)
    if hasattr(config, "workerinput"):  # xdist workers have the environment of their parent
        return
    folder = tempfile.mkdtemp(prefix="vani-tests-")
    os.environ["VANI_CACHE"] = str(Path(folder, "cache"))
    # No test may have measured earlier what another one measures.
    os.environ["VANI_PARTIAL_RESULTS"] = "0"
    # Settings of the user and the centre must not apply.
    os.environ["XDG_CONFIG_HOME"] = folder
    Path(folder, "site.toml").touch()
    os.environ["VANI_SITE"] = str(Path(folder, "site.toml"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow the cases that a sample leaves out, and with `-m slow` tests of invented inputs, on more of them."""
    if invented.is_thorough(config):
        for item in filter(invented.is_invented, items):
            item.add_marker("slow")
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None and item.get_closest_marker("slow") is None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_test in cases.values():
        count = of_test[0].get_closest_marker("sampled").args[0]
        sample = {number * len(of_test) // count for number in range(count)}
        for number, item in enumerate(of_test):
            if number not in sample:
                item.add_marker("slow")


@given(strategies.none())
def call_hypothesis_once(_: None) -> None:
    pass


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection: searching them takes 0.4 s each time.

    Hypothesis makes its random generator at its first call. From Python 3.14 on it misses the referrer of that generator
    among frozen objects, and warns that nothing refers to it.
    """
    call_hypothesis_once()
    gc.collect()
    gc.freeze()


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def kib_of(field: str) -> int:
    return int(re.search(rf"{field}:\s+(\d+) kB", STATUS.read_text())[1])


@pytest.fixture
def peak_memory() -> Callable[..., AbstractContextManager[None]]:
    """`with peak_memory(below=BYTES):` fails if resident memory grows by more within the block.

    Only Linux can reset an earlier peak; elsewhere nothing is measured.
    """

    @contextmanager
    def measured(*, below: int) -> Iterator[None]:
        try:
            CLEAR.write_text("5")
        except OSError:
            yield
            return
        before = kib_of("VmRSS")
        yield
        grown = (kib_of("VmHWM") - before) * 1024
        assert grown <= below, f"memory grew by {grown >> 20} MiB, {below >> 20} MiB are allowed"

    return measured
