"""Names of the I/O nodes that running jobs use."""

from hypothesis import given
from hypothesis import strategies as st

from vani.centre.plan.running_jobs import Has, RunningJob, map_of, share
from vani.centre.plan.schema.jobs import PlannedJob
from vani.centre.plan.schema.plans import ForwardSettings

CURVE = {0: 1e8, 1: 2e8, 2: 3e8, 4: 8e8}


def job(number, has=None, curve=CURVE, nodes=4):
    items = None if curve is None else [{"io_nodes": n, "bandwidth": rate} for n, rate in curve.items()]
    asked = PlannedJob.model_validate({"name": str(number), "nodes": nodes, "curve": items})
    return RunningJob(asked, has)


def settings(io_nodes, **more):
    return ForwardSettings.model_validate(
        {"io_nodes": io_nodes, "policy": "mckp", "objective": "sum", "floor": 0.0, "direct": True, "rounding": "half-up",
         "nodes_per_io_node": None} | more
    )  # fmt: skip


def shared(jobs, pool, **more):
    return share(jobs, pool, settings(len(pool), **more), ())


POOL = ["a", "b", "c", "d"]


def test_starting_job_gets_its_io_nodes_by_name():
    assert shared([job(1)], POOL).has == {"1": Has("own", ("a", "b", "c", "d"))}


def test_running_job_releases_some_and_keeps_the_others():
    found = shared([job(1, Has("own", ("a", "b", "c", "d"))), job(2, None, {1: 1e8, 2: 9e9})], POOL).has
    assert found == {"1": Has("own", ("a", "b")), "2": Has("own", ("c", "d"))}


def test_io_nodes_of_an_ended_job_go_to_running_jobs():
    assert shared([job(1, Has("own", ("d", "b")))], POOL).has == {"1": Has("own", ("d", "b", "a", "c"))}


def test_how_a_running_job_reaches_its_files_does_not_change():
    direct_is_best = {0: 9e9, 1: 1e8, 2: 2e8}
    found = shared([job(1, Has("direct")), job(2, Has("own", ("a",)), direct_is_best)], POOL).has
    assert found == {"1": Has("direct"), "2": Has("own", ("a", "b"))}


def test_an_io_node_that_broke_is_replaced():
    found = shared([job(1, Has("own", ("x", "b", "c", "d")))], POOL).has["1"]
    assert found == Has("own", ("b", "c", "d", "a"))


def test_shares_beyond_the_pool_are_cut_to_the_rest():
    found = shared(
        [job(n, None, {1: 1e8, 2: 2e8, 4: 4e8}) for n in (1, 2, 3)],
        POOL,
        policy="static",
        nodes_per_io_node=2,
    )
    assert {key: len(one.io_nodes) for key, one in found.has.items()} == {"1": 2, "2": 2, "3": 0}
    assert found.over == {"3": "2 I/O nodes by the policy, but 0 are left"}


def test_too_few_io_nodes_are_shared():
    found = shared([job(n, None, {1: 1e8, 2: 2e8}) for n in range(1, 7)], POOL, direct=False)
    shares = [one.io_nodes for one in found.has.values() if one.access == "shared"]
    assert shares
    assert len(set(shares)) == 1
    assert len({name for one in found.has.values() for name in one.io_nodes}) == 4


def test_unserved_job_does_not_affect_the_others():
    running = job(1, Has("own", ("a", "b", "c", "d")))
    found = shared([running, job(2, None, None)], [], direct=False)
    assert found.has == {"1": Has("own")}
    assert "2" in found.unplaced


def test_a_map_gives_each_host_the_number_of_an_io_node():
    lines = list(map_of(["n1", "n2", "n3", "n4"], ("fwd9", "fwd2"), {"fwd2": 2, "fwd9": 9}))
    assert lines == ["n1 9\n", "n2 9\n", "n3 2\n", "n4 2\n"]
    assert [line.split()[1] for line in map_of(["n1", "n2", "n3"], ("a", "b"), {"a": 0, "b": 1})] == [
        "0",
        "0",
        "1",
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 6, 8, 12]), st.booleans(), st.integers(0, 4)), min_size=1, max_size=8
    ),
    st.integers(0, 12),
    st.sampled_from(["mckp", "static", "process"]),
    st.booleans(),
    st.data(),
)  # fmt: skip
def test_no_io_node_is_assigned_twice_and_the_next_plan_is_equal(asked, size, policy, direct, data):
    pool = [f"f{n}" for n in range(size)]
    free = [*pool, "broken"]
    jobs = []
    for number, (nodes, is_known, count) in enumerate(asked, 1):
        names = tuple(
            free.pop(data.draw(st.integers(0, len(free) - 1))) for _ in range(min(count, len(free)))
        )
        curve = {n: 1e8 * (1 + n) * number for n in (0, 1, 2, 4)} if is_known else None
        has = Has("own", names) if names else data.draw(st.sampled_from([None, Has("direct")]))
        jobs.append(job(number, has, curve, nodes))
    found = shared(jobs, pool, policy=policy, direct=direct)
    own = [name for one in found.has.values() if one.access == "own" for name in one.io_nodes]
    common = {name for one in found.has.values() if one.access == "shared" for name in one.io_nodes}
    assert len(own) == len(set(own))
    assert len(common) <= 1
    assert not common & set(own)
    assert common | set(own) <= set(pool)
    assert found.has.keys() | found.unplaced.keys() >= {one.number for one in jobs}
    for one in jobs:
        if one.has is not None and one.has.access == "direct":
            assert found.has[one.number] == one.has
    if policy == "mckp" and not found.unplaced and not common:
        again = shared([RunningJob(one.planned, found.has[one.number]) for one in jobs], pool, direct=direct)
        assert sum(len(one.io_nodes) for one in again.has.values()) <= size
