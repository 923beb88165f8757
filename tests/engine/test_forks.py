"""Tasks that forks of the process share: each is done once, and whatever happens, one line tells it and no fork is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from textwrap import dedent

import pytest
from forking_scripts import BEGIN, run
from running import is_running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux")

@pytest.mark.parametrize("count", [1, 2, 30])
def test_each_number_is_taken_once_and_by_all(count):
    said = run(f"""
        found = share(slow, {count}, 2, lambda done: None)
        print(sorted(number for some in found for _, number in some) == list(range({count})))
        print(len(found), len({{pid for some in found for pid, _ in some}}), {{pid for pid, _ in found[0]}} <= {{os.getpid()}}, is_here())
    """)
    assert said[0] == "True"
    if count == 30:
        assert said[1] == "3 3 True False"


def test_more_numbers_than_a_pipe_holds_are_taken_once():
    assert run("""
        found = share(list, 200_001, 3, lambda done: None)
        print(sorted(number for some in found for number in some) == list(range(200_001)))
    """) == ["True"]


def test_no_number_is_taken_twice_when_many_come_for_them_at_once():
    # Was: numbers lay in a file whose place is shared, and two took the same one once in some thousand.
    assert run("""
        for _ in range(20):
            found = share(list, 2000, 3, lambda done: None)
            assert sorted(number for some in found for number in some) == list(range(2000))
        print("done")
    """) == ["done"]


def test_progress_is_told_here_and_never_goes_back():
    assert run("""
        told = []
        share(slow, 30, 2, told.append)
        print(told == sorted(told), 10 < told[-1] <= 30, len(told) < 30)
    """) == ["True True True"]


def test_what_a_task_raises_is_raised_and_ends_the_others():
    assert run("""
        from vani.errors import TraceError

        def work(numbers):
            for number in numbers:
                time.sleep(0.01)
                if is_fork():
                    raise TraceError("is odd", where="here", todo="try again")
            return number

        before = time.monotonic()
        try:
            share(work, 100_000, 2, lambda done: None)
        except TraceError as error:
            print(error)
        print(time.monotonic() - before < 20, is_here())
    """) == ["here: is odd; try again", "True False"]


def test_a_fault_in_a_fork_tells_where_it_was():
    assert run("""
        def work(numbers):
            if is_fork():
                broken()
            return list(numbers)

        def broken():
            raise LookupError(lambda: None) if len(sys.argv) > 1 else LookupError("nothing")

        for sys.argv in (["one"], ["one", "two"]):
            try:
                share(work, 10, 1, lambda done: None)
            except Exception as error:
                text = "".join([str(error), *getattr(error, "__notes__", [])])
                print(type(error).__name__, "in broken" in text, is_here())
    """) == ["LookupError True False", "RuntimeError True False"]


def test_a_fork_that_is_killed_is_one_line():
    assert run("""
        def work(numbers):
            if is_fork():
                os.kill(os.getpid(), signal.SIGKILL)
            return list(numbers)

        try:
            share(work, 10, 2, lambda done: None)
        except Exception as error:
            print(type(error).__name__, error, is_here())
    """) == [
        "VaniError a process that shared the work was killed, as happens where memory runs out; "
        "use --scheduler synchronous, or a machine with more memory False"
    ]


def test_an_interrupt_ends_the_forks_which_leave_it_to_this_process():
    assert run("""
        def work(numbers):
            for number in numbers:
                if not is_fork():
                    os.killpg(0, signal.SIGINT)
                time.sleep(60)

        os.setpgid(0, 0)
        before = time.monotonic()
        try:
            share(work, 10, 2, lambda done: None)
        except KeyboardInterrupt:
            print("interrupted", is_here(), time.monotonic() - before < 20)
    """) == ["interrupted False True"]


def test_an_interrupt_that_comes_to_a_fork_is_not_its_own():
    assert run("""
        def work(numbers):
            if is_fork():
                os.kill(os.getpid(), signal.SIGINT)
            return list(numbers)

        print(sorted(number for some in share(work, 10, 2, lambda done: None) for number in some) == list(range(10)))
    """) == ["True"]


def test_forks_end_with_the_process_that_made_them():
    script = """
        def work(numbers):
            os.write(1, b"%d\\n" % os.getpid())
            time.sleep(60)

        share(work, 2, 1, lambda done: None)
    """
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN + dedent(script)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        both = {int(parent.stdout.readline()), int(parent.stdout.readline())}
        parent.send_signal(signal.SIGKILL)
        (fork,) = both - {parent.pid}
        until = time.monotonic() + 20
        while is_running(fork) and time.monotonic() < until:
            time.sleep(0.01)
        assert not is_running(fork)


def test_what_was_not_yet_written_is_written_once():
    assert run("""
        sys.stdout.write("once ")
        share(list, 2, 3, lambda done: None)
    """) == ["once "]


@pytest.mark.parametrize("allowed", [0, 1])
def test_where_the_system_allows_fewer_forks_the_others_do_their_work(allowed):
    assert run(f"""
        real, left = os.fork, [None] * {allowed}

        def fork():
            if not left:
                raise BlockingIOError(11, "no more processes")
            left.pop()
            return real()

        os.fork = fork
        opened = len(os.listdir("/proc/self/fd"))
        team = Forks(3)
        for _ in range(2):
            found = team.share(slow, 30, lambda done: None)
            print(len(found), sum(map(len, found)))
        team.end()
        print(len(os.listdir("/proc/self/fd")) - opened)
    """) == [f"{allowed + 1} 30"] * 2 + ["0"]


def test_a_process_with_threads_is_not_forked():
    assert run("""
        import numpy, pyarrow, threading

        print(can_fork())
        other = threading.Thread(target=time.sleep, args=(1,))
        other.start()
        print(can_fork())
        other.join()
        print(can_fork())
    """) == ["True", "False", "True"]


def test_forks_write_to_files_that_this_process_reads(tmp_path):
    assert run(f"""
        from pathlib import Path
        from vani.analyzers.passes.scratch_file import ScratchFile

        for folder in (Path({str(tmp_path)!r}), Path({str(tmp_path / "missing")!r}), None):
            file = ScratchFile(folder)
            first = file.append([b"first"])

            def work(numbers):
                return [(time.sleep(0.01), file.append([str(number).encode(), b"!"]))[1] for number in numbers]

            found = share(work, 30, 2, lambda done: None)
            print(sorted(place.read() for some in found for place in some) == sorted(b"%d!" % n for n in range(30)))
            print(first.read().decode(), file.append([b"last"]).read().decode(), len({{p.file for s in found for p in s}}))
    """) == ["True", "first last 3"] * 3
    assert list(tmp_path.iterdir()) == []


def test_temporary_data_that_cannot_be_reached_is_one_line(tmp_path):
    assert run(f"""
        import pickle
        from pathlib import Path
        from vani.analyzers.passes.scratch_file import ScratchFile

        place = ScratchFile(Path({str(tmp_path)!r})).append([b"some"])
        told = pickle.dumps(place)
        del place
        try:
            pickle.loads(told)
        except Exception as error:
            print(type(error).__name__, error)
    """) == [
        "VaniError temporary data of a process that shares the work cannot be read (No such file or directory); "
        "use --scheduler synchronous"
    ]


@pytest.mark.parametrize("wait", [True, False])
def test_nobody_need_wait_for_forks_that_the_system_forgets(wait):
    assert run(f"""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        team = Forks(2)
        found = team.share(slow, 30, lambda done: None)
        os.kill(next(pid for some in found for pid, _ in some if pid != here), signal.SIGKILL)
        time.sleep(0.1)
        team.end(wait={wait})
        print(sum(map(len, found)))
    """) == ["30"]


def test_forks_that_are_not_waited_for_end_and_none_is_left():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            BEGIN
            + dedent("""
                team = Forks(2)
                print(*{pid for some in team.share(slow, 30, lambda done: None) for pid, _ in some} - {here})
                team.end(wait=False)
            """),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not done.stderr
    assert [is_running(int(pid)) for pid in done.stdout.split()] == [False, False]
