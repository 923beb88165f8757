"""The interaction database in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from database_servers import postgresql
from sqlalchemy import inspect, text

from vani.centre.database import address_of, engine_of, server
from vani.centre.placement_library import database as table
from vani.centre.placement_library.database import plan_interactions, store
from vani.centre.placement_library.interactions import Interaction
from vani.errors import InputError

ONE = Interaction("/lustre/a.0", 8 << 30, 1, 0, None, 1 << 30, 2, 0, (3, 1))
ODD = [
    "/lustre/A.0",
    "/lustre/a.0 ",
    "/lustre/ä.0",
    "/lustre/a\n.0",
    '/lustre/it\'s "so", %s :x ?',
    "/lustre/😀",
    "/lustre/" + "x" * 4000,
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("database") / "a file?#%.sqlite")
    else:
        with postgresql() as url:
            yield url


@pytest.fixture(autouse=True)
def empty(database: str) -> None:
    address = address_of(database)
    if address.file is not None:
        address.file.unlink(missing_ok=True)
    else:
        with server(address).begin() as connection:
            connection.execute(text("DROP TABLE IF EXISTS vani_interaction"))


def tell(database: str, statement: str) -> None:
    address = address_of(database)
    engine = server(address) if address.file is None else engine_of(address.file, "rw")
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_stored_interactions_are_found_by_exact_path(database):
    named = [replace(ONE, file=name, mpi_rank=number) for number, name in enumerate(ODD)]
    assert store([ONE, *named], database) == [ONE, *named]
    assert plan_interactions(database) == [ONE, *named]
    for one in [ONE, *named]:
        assert plan_interactions(database, one.file) == [one]
    for path in ("/lustre/a", "/lustre/a.0\0", "\udc80"):
        assert plan_interactions(database, path) == []


def test_largest_and_unknown_figures_are_kept(database):
    most = Interaction(
        "/m", 2**63 - 1, 2**31 - 1, 0, 2**63 - 1, 2**63 - 1, 2000, 2**31 - 1, tuple(range(2000))
    )
    none = Interaction("/n", None, 1, 0, None, 65536, 4, None, ())
    store([most, none], database)
    assert plan_interactions(database) == [most, none]


def test_storing_a_file_again_replaces_only_its_own_rows(database):
    parts = [replace(ONE, extent_end=1 << 31), replace(ONE, extent_id=2, extent_start=1 << 31)]
    other = replace(ONE, file="/lustre/b")
    store([*parts, other], database)
    assert plan_interactions(database, ONE.file) == parts
    store([ONE], database)
    assert plan_interactions(database) == [other, ONE]


@pytest.mark.slow
def test_many_files_are_stored_at_once(database):
    rows = [replace(ONE, file=f"/lustre/{number}") for number in range(3000)]
    for _ in range(2):
        store(rows, database)
    assert plan_interactions(database) == rows


@pytest.mark.slow
def test_concurrent_stores_of_the_same_rows_leave_them_once(database):
    store([], database)
    rows = [replace(ONE, file=f"/lustre/{number}") for number in range(50)]
    failed: list[BaseException] = []

    def again() -> None:
        try:
            for _ in range(4):
                store(rows, database)
        except BaseException as error:
            failed.append(error)

    both = [threading.Thread(target=again) for _ in range(3)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert not failed
    assert plan_interactions(database) == rows


def test_failure_half_way_leaves_the_database_unchanged(database, monkeypatch):
    store([ONE], database)
    sound = table.to_row
    monkeypatch.setattr(table, "to_row", lambda one: {**sound(one), "stripe_size": None})
    with pytest.raises(InputError, match="the database reports: "):
        store([replace(ONE, mpi_rank=7)], database)
    assert plan_interactions(database) == [ONE]


def test_a_table_of_another_shape_is_refused_and_kept(database):
    store([], database)
    tell(database, "ALTER TABLE vani_interaction ADD COLUMN more INTEGER")
    for use in (lambda: store([ONE], database), lambda: plan_interactions(database)):
        with pytest.raises(
            InputError, match="its table vani_interaction belongs to another version or program"
        ):
            use()


def test_invalid_rows_of_another_program_are_refused(database):
    store([ONE], database)
    tell(database, "UPDATE vani_interaction SET ost_list = 'first'")
    with pytest.raises(InputError, match="contains invalid rows"):
        plan_interactions(database)


def test_path_itself_is_not_a_key(database):
    store([ONE], database)
    address = address_of(database)
    engine = server(address) if address.file is None else engine_of(address.file)
    assert [one["column_names"] for one in inspect(engine).get_indexes("vani_interaction")] == [["file_hash"]]
    engine.dispose()


def test_database_without_the_table_has_no_interactions(database):
    address = address_of(database)
    if address.file is not None:
        address.file.touch()
    with pytest.raises(InputError, match="contains no interactions; fill it with `vani plan store`"):
        plan_interactions(database)


def test_invalid_database_name_is_reported_in_one_line_without_the_password(database):
    address = address_of(database)
    if address.url is None:
        pytest.skip("a file has no password")
    wrong = address.url.set(database="nowhere", password="geheim", drivername=address.url.get_backend_name())
    with pytest.raises(InputError) as found:
        plan_interactions(wrong.render_as_string(hide_password=False))
    assert "geheim" not in str(found.value) and "\n" not in str(found.value) and ":***@" in str(found.value)


def test_table_locked_by_another_program_is_refused_after_a_while(database, monkeypatch):
    monkeypatch.setattr("vani.centre.database._WAIT_S", 1)
    monkeypatch.setattr("vani.centre.database._WAIT_S", 0.2)
    store([ONE], database)
    address = address_of(database)
    engine = server(address) if address.file is None else engine_of(address.file, "rw")
    hold = {"postgresql": "LOCK TABLE vani_interaction"}
    with engine.connect() as connection:
        connection.exec_driver_sql(hold.get(engine.dialect.name, "DELETE FROM vani_interaction"))
        with pytest.raises(
            InputError, match="is locked by another process; try again when that has ended"
        ):
            store([replace(ONE, mpi_rank=1)], database)
    assert plan_interactions(database) == [ONE]
