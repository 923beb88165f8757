"""Requests of io_submit (libaio), in logs that strace wrote with them (`-e abbrev=!io_submit`)."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import to_arrow, to_numpy
from vani.readers.functions import PositionRule
from vani.readers.plausible import MOST_OFFSET, NO_VALUE, believed
from vani.readers.strace.lines import Calls
from vani.readers.strace.names import Spellings
from vani.readers.strace.system_calls import FUNCTIONS, SUBMITTED

Ints = NDArray[np.int64]

_BEGIN = "{aio_data="
_REQUEST = (
    r"^[^,]*(?:, aio_key=[^,]*)?, aio_lio_opcode=IOCB_CMD_(?P<opcode>[A-Z]+),.*?"
    r"aio_fildes=\d+<(?P<path>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?"
    r"(?:, aio_buf=(?P<buffer>\[.*?\]|[^,}]*)(?:, aio_nbytes=(?P<n>\d{1,18}))?(?:, aio_offset=(?P<at>-?\d{1,18}))?)?"
    r"(?:, aio_resfd=[^}]*)?\}.*$"
)
_LENGTH = re.compile(r"iov_len=(\d{1,18})")
_CODE = {name: code for code, name in enumerate(FUNCTIONS)}


def are_shown(calls: Calls, rows: Ints) -> NDArray[np.bool_]:
    """Return whether the log contains the requests of these io_submit calls."""
    shown: NDArray[np.bool_] = to_numpy(
        pc.match_substring(calls.args.take(to_arrow(rows)), "aio_lio_opcode=IOCB_CMD_")
    )
    return shown


def requests_of(calls: Calls, thread: Ints, spellings: Spellings) -> dict[str, NDArray[np.generic]] | None:
    """Columns (`rows.ROWS`) of the requests that a block's calls submitted; None if there are none.

    A request has its requested size, and an equal share of its call's time.
    """
    names = calls.name.dictionary.to_pylist()
    if "io_submit" not in names:
        return None
    at = np.flatnonzero((to_numpy(calls.name.indices) == names.index("io_submit")) & (calls.value > 0))
    at = at[are_shown(calls, at)]
    pieces = pc.split_pattern(calls.args.take(to_arrow(at)), _BEGIN)
    call = to_numpy(pc.list_parent_indices(pieces)).astype(np.int64)
    texts = pc.list_flatten(pieces)
    first = np.searchsorted(call, np.arange(len(at)))
    # The other arguments precede the first request.
    number: Ints = np.arange(len(call)) - first[call] - 1
    accepted = np.flatnonzero((number >= 0) & (number < calls.value[at][call]))
    fields = pc.extract_regex(texts.take(to_arrow(accepted)), _REQUEST)
    opcode = pc.struct_field(fields, "opcode")
    known = np.flatnonzero(to_numpy(pc.fill_null(pc.is_in(opcode, pa.array(list(SUBMITTED))), False)))
    if not len(known):
        return None
    fields, call, number = fields.take(to_arrow(known)), call[accepted[known]], number[accepted[known]]
    functions = [SUBMITTED[name] for name in pc.struct_field(fields, "opcode").to_pylist()]
    size = _numbers(fields, "n")
    for request in np.flatnonzero(size == NO_VALUE).tolist():
        lengths = _LENGTH.findall(str(pc.struct_field(fields, "buffer")[request].as_py()))
        size[request] = sum(map(int, lengths)) if lengths else NO_VALUE
    moves = np.array([not name.endswith(":sync") for name in functions], np.bool_)
    size[~moves | ~believed(size) | (size == 0)] = NO_VALUE
    offset = _numbers(fields, "at")
    offset[~moves | (offset < 0) | (offset >= MOST_OFFSET)] = NO_VALUE
    row = at[call]
    took = np.maximum(calls.took[row], 0) // calls.value[row]
    path = pc.struct_field(fields, "path")
    n = len(row)
    return {
        "thread": thread[row].astype(np.int32),
        "pid": calls.pid[row].astype(np.int32),
        "func": np.array([_CODE[name] for name in functions], np.int16),
        "flags": np.zeros(n, np.int16),
        "rule": np.where(size != NO_VALUE, PositionRule.AT, PositionRule.NONE).astype(np.int8),
        "there": np.ones(n, np.bool_),
        "standard": np.zeros(n, np.bool_),
        "file": spellings.codes(path, pa.array([""] * n)),
        "rename_to": np.full(n, -1, np.int32),
        "bytes": size,
        "value": offset,
        "start": calls.start[row] + number * took,
        "took": took,
    }


def _numbers(fields: pa.StructArray, name: str) -> Ints:
    column = pc.struct_field(fields, name)
    digits = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return to_numpy(pc.cast(digits, pa.int64()), NO_VALUE).astype(np.int64)
