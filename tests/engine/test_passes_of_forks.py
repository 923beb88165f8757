"""Forks go from pass to pass: they are told what was made meanwhile, and what they answer stays."""

from __future__ import annotations

import sys

import pytest
from forking_scripts import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux")


def test_forks_stay_for_the_passes_that_follow():
    assert run("""
        team, passes = Forks(2), []
        for count in (90, 100, 90):
            found = team.share(slow, count, lambda done: None)
            assert sorted(number for some in found for _, number in some) == list(range(count))
            passes.append({pid for some in found for pid, _ in some})
        print(len(passes[0]), passes[0] == passes[1] == passes[2], is_here())
        team.end()
        print(is_here())
    """) == ["3 True True", "False"]


def test_there_are_no_more_than_tasks_and_others_join_where_there_are():
    assert run("""
        team = Forks(3)
        for count in (2, 40, 2, 1):
            found = team.share(slow, count, lambda done: None)
            print(len(found), sorted(number for some in found for _, number in some) == list(range(count)))
        team.end()
    """) == ["2 True", "4 True", "4 True", "4 True"]


def test_progress_of_a_pass_is_that_of_this_pass():
    # Forks are done with their numbers when this process has had its last and listens no more; they may have had all.
    assert run("""
        team = Forks(3)

        def work(numbers):
            return [(time.sleep(0.3 if is_fork() else 0.03), number)[1] for number in numbers]

        for count in (8, 2, 20):
            told = []
            team.share(work, count, told.append)
            print(told == sorted(told), max(told, default=0) <= count)
        team.end()
    """) == ["True True"] * 3


SECOND_PASS = """
import numpy
from functools import partial

def where(what, numbers):
    return [(time.sleep(0.01), os.getpid(), what(number))[1:] for number in numbers]

def sum_to(array, number):
    return int(array[: number + 1].sum())

def change(array, number):
    if is_fork():
        array[number] = 0
    return 0

class Odd:
    def __reduce__(self):
        return broken, ()

def broken():
    raise LookupError("is not made")

def same(odd, number):
    return number

team = Forks(1)
before = {pid for some in team.share(partial(where, int), 60, lambda done: None) for pid, _ in some}

def second(work, constants=()):
    found = [one for some in team.share(work, 60, lambda done: None, constants) for one in some]
    print("the same" if {pid for pid, _ in found} == before else "others", sorted(value for _, value in found)[-1])
"""


def test_what_is_made_between_passes_is_told_once():
    said = run(
        SECOND_PASS
        + """
array = numpy.arange(3000)
second(partial(where, partial(sum_to, array)), [array])
used = team._between.memory._end
second(partial(where, partial(sum_to, array)), [array])
print(used > array.nbytes, team._between.memory._end - used < array.nbytes)
team.end()
"""
    )
    assert said == ["the same 1770", "the same 1770", "True True"]


def test_what_was_known_before_forks_were_made_is_not_told():
    assert run("""
        from functools import partial

        class Table:
            def __reduce__(self):
                raise TypeError("is not sent")

        table = Table()

        def names(table, numbers):
            return [(time.sleep(0.01), os.getpid(), type(table).__name__)[1:] for _ in numbers]

        team = Forks(1)
        for _ in range(2):
            found = team.share(partial(names, table), 60, lambda done: None, [table])
            print(len({pid for some in found for pid, _ in some}), {name for some in found for _, name in some})
        team.end()
    """) == ["2 {'Table'}"] * 2


@pytest.mark.parametrize("much", ["lambda number: 7", "partial(sum_to, numpy.ones(1 << 24, int))"])
def test_what_cannot_be_told_is_known_to_new_forks(much):
    said = run(SECOND_PASS + f"\nsecond(partial(where, {much}))\nteam.end()\nprint(is_here())")
    assert said == ["others 7" if "lambda" in much else "others 60", "False"]


def test_forks_do_not_change_what_others_were_told():
    assert (
        run(
            SECOND_PASS
            + """
try:
    second(partial(where, partial(change, numpy.ones(60))))
except ValueError as error:
    print(error, is_here())
"""
        )
        == ["assignment destination is read-only False"]
    )


def test_what_forks_cannot_load_is_known_to_new_ones():
    assert run(SECOND_PASS + "second(partial(where, partial(same, Odd())))\nteam.end()\nprint(is_here())") == [
        "others 59",
        "False",
    ]


def test_a_fork_that_is_killed_between_passes_is_one_line():
    said = run(
        SECOND_PASS
        + """
(fork,) = before - {os.getpid()}
os.kill(fork, signal.SIGKILL)
try:
    second(partial(where, int))
except Exception as error:
    print(type(error).__name__, error, is_here())
"""
    )
    assert said[0].startswith("VaniError a process that shared the work was killed") and said[0].endswith("False")


@pytest.mark.parametrize("in_memory", [True, False])
def test_places_in_files_are_told_between_processes_whoever_made_them_when(tmp_path, in_memory):
    folder = "None" if in_memory else f"Path({str(tmp_path)!r})"
    assert run(f"""
        from functools import partial
        from pathlib import Path
        from vani.analyzers.passes.scratch_file import ScratchFile

        def note(file, numbers):
            return [(time.sleep(0.01), os.getpid(), file.append([b"%d!" % number]))[1:] for number in numbers]

        def look(places, numbers):
            return [(time.sleep(0.01), os.getpid(), places[number].read())[1:] for number in numbers]

        def shared(work):
            found = [one for some in team.share(work, 90, lambda done: None) for one in some]
            return {{pid for pid, _ in found}}, [value for _, value in found]

        team = Forks(2)
        before, _ = shared(partial(look, [type("", (), {{"read": int}})] * 90))
        writers, places = shared(partial(note, ScratchFile({folder})))
        readers, found = shared(partial(look, places))
        print(len(writers), writers == readers == before, sorted(found) == sorted(b"%d!" % n for n in range(90)))
        team.end()
        print({{place.read() for place in places}} == set(found))
    """) == ["3 True True", "True"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 1, 5000, 3_000_000, 9_000_000])
def test_answers_of_any_size_arrive_and_stay_when_more_is_answered_and_the_forks_have_ended(length):
    assert run(
        f"""
        import numpy
        from functools import partial

        def filled(value, numbers):
            some = [(time.sleep(0.01), number)[1] for number in numbers]
            return os.getpid(), numpy.full({length}, value), some

        team = Forks(2)
        found = [team.share(partial(filled, value), 30, lambda done: None) for value in (1, 2, 3)]
        print([len({{pid for pid, *_ in answers}}) for answers in found])
        team.end()
        found += [team.share(partial(filled, 4), 30, lambda done: None)]
        team.end()
        for value, answers in enumerate(found, 1):
            whole = all(len(array) == {length} and (array == value).all() for _, array, _ in answers)
            print(whole, sorted(number for *_, some in answers for number in some) == list(range(30)))
        """
    ) == ["[3, 3, 3]", *["True True"] * 4]


def test_an_engine_that_rests_has_no_forks_and_makes_new_ones_for_more():
    assert run("""
        from vani.engine.run import Engine
        from vani.engine.scheduler import LocalScheduler

        def process(number):
            return (time.sleep(0.01), os.getpid())[1]

        engine = Engine(LocalScheduler(forks=True))
        os.sched_getaffinity = lambda _: {0, 1}
        found = []
        for _ in range(2):
            found.append({*engine.map(process, range(30), calls=1 << 30)} - {here})
            engine.rest()
            time.sleep(0.3)
            print(len(found[-1]), [os.path.exists(f"/proc/{pid}/exe") for pid in found[-1]])
        print(found[0] != found[1])
        engine.rest()
        engine.close()
    """) == ["1 [False]", "1 [False]", "True"]
