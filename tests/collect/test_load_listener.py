"""How a listener interprets messages, and that no message can harm it."""

import json
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.centre.plan.load.load_channel import LONGEST, TOPIC, LoadMessage, message_of, pack
from vani.centre.plan.load.load_listener import Heard
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "0123456789abcdef"


def tree(name="oss0", number=0, role="oss", run=RUN, cpu=0.2, index=0, **more):
    own = {
        "oss": [{"name": name, "cpu": cpu, "memory": 0.3}],
        "ost": [{"index": index, "oss": name, "size": 100, "used": 1, "load": 0.5}],
    }
    mds = {"mds": {"cpu": cpu, "memory": 0.3}}
    snapshot = (own if role == "oss" else mds) | {"schema": "vani.snapshot/1", "time": NOW.isoformat()}
    return {
        "publisher": name,
        "run": run,
        "number": number,
        "interval_s": 60.0,
        "role": role,
        "snapshot": snapshot,
    } | more


def sent(**more):
    return pack(LoadMessage.model_validate(tree(**more)))


def raw(told):
    return TOPIC + json.dumps(told).encode()


def reasons(snapshot):
    return {one.name: one.reason for one in snapshot.no_data}


def test_message_survives_sending_and_reading():
    message = LoadMessage.model_validate(tree())
    assert message_of(pack(message)) == message


def test_snapshot_contains_everything_heard():
    heard = Heard()
    for name, index in (("oss10", 3), ("oss2", 7)):
        heard.take(sent(name=name, index=index), 0.0)
    heard.take(sent(name="meta", role="mds", cpu=0.4), 0.0)
    found = heard.snapshot(1.0, NOW)
    assert [(one.name, one.cpu, one.memory) for one in found.oss] == [("oss2", 0.2, 0.3), ("oss10", 0.2, 0.3)]
    assert [(one.index, one.oss, one.load) for one in found.ost] == [(3, "oss10", 0.5), (7, "oss2", 0.5)]
    assert found.mds is not None
    assert (found.mds.cpu, found.no_data, found.notes) == (0.4, [], [])
    found.refuse_contradictions("it")


def test_silent_server_has_no_figures_and_is_listed():
    heard = Heard()
    heard.take(sent(), 0.0)
    heard.take(sent(name="meta", role="mds"), 0.0)
    assert reasons(heard.snapshot(180.0, NOW)) == {}
    found = heard.snapshot(181.0, NOW)
    assert reasons(found) == dict.fromkeys(["meta", "oss0"], "silent for 181 s; it published every 60 s")
    assert (found.oss[0].cpu, found.oss[0].memory) == (None, None)
    assert found.mds is not None
    assert (found.mds.cpu, found.mds.memory) == (None, None)
    assert (found.ost[0].load, found.ost[0].size, found.ost[0].used) == (None, 100, 1)
    heard.take(sent(number=1), 200.0)
    assert heard.snapshot(201.0, NOW).oss[0].cpu == 0.2


def test_expected_servers_are_missing_until_heard():
    heard = Heard(("oss0", "oss1", "meta"))
    heard.take(sent(), 0.0)
    assert not heard.has_all
    found = heard.snapshot(1.0, NOW)
    assert reasons(found) == {
        "meta": "never heard", "oss1": "never heard", "mds": "no publisher reported the metadata server",
    }  # fmt: skip
    assert {one.name: one.cpu for one in found.oss} == {"oss0": 0.2}
    heard.take(sent(name="oss1", index=1), 0.0)
    heard.take(sent(name="meta", role="mds"), 0.0)
    assert heard.has_all
    assert [one.name for one in heard.snapshot(1.0, NOW).oss] == ["oss0", "oss1"]


def test_silent_forwarding_node_counts_as_offline():
    heard = Heard()
    own = {"forwarding": [{"name": "fwd1", "load": 0.3}]}
    heard.take(raw(tree(name="fwd1", role="forwarding") | {"snapshot": own}), 0.0)
    assert [(one.name, one.load, one.state) for one in heard.snapshot(1.0, NOW).forwarding] == [
        ("fwd1", 0.3, "ok")
    ]
    found = heard.snapshot(200.0, NOW)
    assert [(one.load, one.state) for one in found.forwarding] == [(None, "offline")]
    assert "fwd1" in reasons(found)


def test_late_and_lost_messages_are_counted_and_the_newest_counts():
    heard = Heard()
    for number, cpu in ((0, 0.1), (4, 0.4), (2, 0.2), (4, 0.9)):
        heard.take(sent(number=number, cpu=cpu), float(number))
    found = heard.snapshot(5.0, NOW)
    assert found.oss[0].cpu == 0.4
    assert found.notes == ["2 messages arrived late or twice", "3 messages lost in transit"]


def test_restarted_publisher_counts_from_0():
    heard = Heard()
    heard.take(sent(number=700), 0.0)
    heard.take(sent(number=0, run="f" * 16, cpu=0.9), 1.0)
    assert heard.snapshot(2.0, NOW).oss[0].cpu == 0.9
    assert (heard.late, heard.lost) == (0, 0)


def test_moved_target_belongs_to_its_last_server():
    heard = Heard()
    heard.take(sent(name="oss0", index=5), 0.0)
    heard.take(sent(name="oss1", index=5), 300.0)
    found = heard.snapshot(301.0, NOW)
    assert [(one.index, one.oss, one.load) for one in found.ost] == [(5, "oss1", 0.5)]


@pytest.mark.parametrize(
    ("cpu", "memory", "waits"),
    [(0.69, 0.49, 0), (0.7, 0.1, 1), (0.1, 0.5, 1), (0.9, 0.9, 2), (None, None, 0)],
)
def test_busy_metadata_server_is_mentioned(cpu, memory, waits):
    found = Snapshot.model_validate({"mds": {"cpu": cpu, "memory": memory}})
    assert len(found.reasons_to_wait()) == waits
    heard = Heard()
    heard.take(raw(tree(role="mds") | {"snapshot": {"mds": {"cpu": cpu, "memory": memory}}}), 0.0)
    assert heard.snapshot(1.0, NOW).notes == found.reasons_to_wait()
    if waits == 2:
        assert (
            found.reasons_to_wait()[0] == "the metadata server uses 90 % of its processors: allot below 70 %"
        )


def test_clock_ahead_of_ours_is_reported():
    heard = Heard()
    heard.take(sent(), 0.0)
    assert heard.snapshot(1.0, NOW - timedelta(minutes=5)).notes == [
        "clocks of 1 server are ahead of this one: oss0"
    ]


BROKEN = {
    "nothing": b"",
    "another topic": b"vani.load/2 {}",
    "no JSON": TOPIC + b"{",
    "bytes": TOPIC + b"\xff\x00",
    "a list": TOPIC + b"[]",
    "very deep": TOPIC + b"[" * 100_000,
    "a pickle": TOPIC + pickle.dumps({"publisher": "oss0"}),
    "too long": TOPIC + b" " * LONGEST + b"{}",
    "unknown key": raw(tree(extra=1)),
    "nan": TOPIC + json.dumps(tree(cpu=float("nan"))).encode(),
    "a share above 1": raw(tree(cpu=1.5)),
    "below 0": raw(tree(number=-1)),
    "no interval": raw(tree(interval_s=0)),
    "a name with quotes": raw(tree(name="a'b")),
    "a name with a line end": raw(tree(name="a\nb")),
    "another server": raw(tree() | {"publisher": "oss9"}),
    "another's metadata": raw(tree() | {"snapshot": {"mds": {"cpu": 0.0}}}),
    "more used than there is": raw(tree() | {"snapshot": {"oss": [{"name": "oss0"}], "ost": [{"index": 0, "oss": "oss0", "size": 1, "used": 2}]}}),
    "a target twice": raw(tree() | {"snapshot": {"oss": [{"name": "oss0"}], "ost": [{"index": 0, "oss": "oss0", "size": 1, "used": 0}] * 2}}),
    "a target of nobody": raw(tree() | {"snapshot": {"ost": [{"index": 0, "size": 1, "used": 0}]}}),
    "forwarding nodes": raw(tree() | {"snapshot": {"forwarding": [{"name": "fwd0"}]}}),
}  # fmt: skip


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_invalid_messages_are_skipped_and_counted(content):
    heard = Heard()
    heard.take(sent(), 0.0)
    heard.take(content, 1.0)
    found = heard.snapshot(2.0, NOW)
    assert [one.name for one in found.oss] == ["oss0"]
    assert found.oss[0].cpu == 0.2
    assert found.notes[0].startswith("1 message left out: ")
    assert found.notes[0].isprintable()
    with pytest.raises(InputError):
        message_of(content)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_counted_as_malformed(content):
    heard = Heard()
    heard.take(TOPIC + content, 0.0)
    heard.take(content, 0.0)
    assert heard.malformed == 2
    assert Snapshot.model_validate_json(heard.snapshot(0.0, NOW).model_dump_json(by_alias=True)).oss == []
