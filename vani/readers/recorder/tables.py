"""A trace's tables, from all of its files except the time stamps: signatures, grammars, files, and damage."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vani.columns import Bools, Ints, Numbers, distinct
from vani.errors import TraceError
from vani.readers.paths import PathTable, Probes, summed
from vani.readers.recorder.call_table import CallTableFiles, TableCounts
from vani.readers.recorder.grammar import Grammar, decode_grammar
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.source import Extent, Source
from vani.readers.recorder.unique_grammars import GrammarFiles, GrammarFrames, UniqueGrammars
from vani.readers.signatures import HandleTable, Signatures
from vani.readers.trace_reader import some_ranks
from vani.units import counted

_MAX_GRAMMARS_BYTES = 1 << 28
"""Maximum total bytes of unique grammars, which stay in memory."""
_MAX_REPORTED = 8
"""Number of damaged ranks that are reported individually."""
_SMALL_GRAMMARS = 1 << 20
_NOTHING = Extent(Path(), 0, 0)
_CACHED_SYMBOLS, _OVERHEAD = 1 << 22, 256
"""Symbols and signatures of kept ranks with their own tables; an object counts as this many."""


@dataclass
class Tables:
    """Facts about the whole trace, known before any call is read."""

    paths: Sequence[str]
    """Paths by code."""
    handles: int
    """Number of ids with which calls name open files."""
    calls: Ints
    users: Ints
    """Number of ranks that use each file."""
    probes: Bools
    """Shape (paths,): paths that were only probed."""
    of_rank: Ints
    """Unique grammar of each rank, -1 if it is lost or not shared."""
    pattern_position: Ints
    facts: list[tuple[str, list[str], int]]
    problems: list[str]
    nested: bool
    """Whether some call has a depth above 0."""
    shared: Signatures | None = None
    grammars: UniqueGrammars | None = None
    """The signatures and grammars that ranks share; None without inter-process compression."""
    sharing: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Number of ranks that share each unique grammar."""


class _Tally:
    """Sums over all grammars: calls by signature, ranks by file, kinds of calls with patterns by grammar."""

    def __init__(self, signatures: Signatures, files: int, ranks: Ints, probes: Probes) -> None:
        """`ranks[grammar]` is the number of ranks that share it."""
        self._signatures, self._ranks, self._files = signatures, ranks, files
        self.probes = probes
        self.totals = np.zeros(len(signatures), dtype=np.int64)
        self.users = np.zeros(files, np.int64)
        self.kinds: Ints | None = None
        if signatures.slope.any():
            self.kinds = np.zeros((len(ranks), int(signatures.slope_group.max(initial=-1)) + 1), dtype=np.int64)

    def add(self, grammar: Ints, ids: Ints, often: Ints) -> None:
        """Add the terminals of some grammars."""
        ranks = self._ranks[grammar]
        np.add.at(self.totals, ids, often * ranks)
        self.probes.see(self._signatures, ids)
        file = self._signatures.file[ids]
        named = np.flatnonzero(file >= 0)
        pairs = distinct(grammar[named] * max(1, self._files) + file[named])
        np.add.at(self.users, pairs % max(1, self._files), self._ranks[pairs // max(1, self._files)])
        if self.kinds is not None:
            group = self._signatures.slope_group[ids]
            some = group >= 0
            np.add.at(self.kinds, (grammar[some], group[some]), 1)


class TableReader:
    """Reads one trace's tables, and on request again those of ranks that have their own."""

    def __init__(self, source: Source, meta: Metadata) -> None:
        self._source, self._meta = source, meta
        self._call_tables = CallTableFiles(source, meta)
        self._cache: dict[int, tuple[Signatures, Grammar]] = {}
        self._cached_symbols = 0
        self._own_paths, self._own_handles = PathTable(), HandleTable()
        """Paths and handles of ranks with their own call tables."""

    def read(self) -> Tables:
        """The tables of the whole trace.

        Raises
        ------
        TraceError
            The files that all ranks share cannot be read.
        """
        return self._read_shared() if self._meta.interprocess else self._read_per_rank()

    def _read_shared(self) -> Tables:
        """With inter-process compression: one call table, and unique grammars that ranks share."""
        framed, path_table, handles = self._meta.layout.framed, PathTable(), HandleTable()
        name = "recorder.cst" if framed else "0.cst"
        signatures, counts_and_texts = self._call_tables.read(name, path_table, handles)
        paths = path_table.paths
        problems = list(signatures.problems)
        ranks = self._meta.ranks
        ids = self._source.read("ug.mt")
        where = self._source.where("ug.mt")
        numbers = np.frombuffer(ids[: len(ids) // 4 * 4], "<i4").astype(np.int64)
        of_rank = np.full(ranks, -1, dtype=np.int64)
        of_rank[: len(numbers)] = numbers[:ranks]
        if len(ids) == 4 * (ranks + 1):
            unique = int(numbers[-1])
        else:
            problems.append(
                f"{where}: has {counted(len(ids), 'byte')}, for {counted(ranks, 'rank')} it needs {4 * (ranks + 1):,}"
            )
            unique = int(of_rank.max()) + 1
        if not 1 <= unique <= ranks:
            raise TraceError(f"claims {counted(unique, 'grammar')} of {counted(ranks, 'rank')}", where=where)
        strays = np.flatnonzero((of_rank < 0) | (of_rank >= unique))
        if len(strays):
            problems.append(
                f"{where}: ranks {some_ranks(strays)}: left out, it names none of the "
                f"{counted(unique, 'grammar')} for them"
            )
            of_rank[strays] = -1
        times = np.bincount(of_rank[of_rank >= 0], minlength=unique)
        tally = _Tally(signatures, len(paths), times, Probes(self._meta.functions))
        files = GrammarFrames(self._source, unique, problems) if framed else GrammarFiles(self._source, unique)
        large = (self._source.extent("ug.cfg") or _NOTHING).length > _SMALL_GRAMMARS
        grammars = UniqueGrammars(
            files,
            unique,
            len(signatures),
            tally.add,
            most_bytes=_MAX_GRAMMARS_BYTES,
            threads=2 if large else 1,
        )
        problems += grammars.problems
        calls = np.append(grammars.calls, 0)[of_rank]
        left_out = np.flatnonzero(np.append(grammars.lost, False)[of_rank])
        if len(left_out):
            problems.append(
                f"{self._source.where('ug.cfg')}: ranks {some_ranks(left_out)}: left out, their grammars are lost"
            )
        of_rank[left_out] = -1
        counts = counts_and_texts.counts
        if counts is not None and not problems and (tally.totals != counts).any():
            entry = int(np.flatnonzero(tally.totals != counts)[0])
            problems.append(
                f"call table counts {counted(counts[entry], 'call')} of signature {entry}, "
                f"the grammars {tally.totals[entry]}: grammars are used"
            )
        position = np.zeros((ranks, 0), np.int64) if tally.kinds is None else group_positions(tally.kinds, of_rank)
        return Tables(
            paths=paths,
            handles=len(handles),
            calls=calls,
            users=tally.users,
            probes=tally.probes.only_probed(len(paths)),
            shared=signatures,
            grammars=grammars,
            of_rank=of_rank,
            sharing=times,
            pattern_position=position,
            facts=counts_and_texts.facts(tally.totals),
            problems=problems,
            nested=bool(signatures.depth.max(initial=0) > 0),
        )

    def _read_per_rank(self) -> Tables:
        """Without inter-process compression: a call table and a grammar per rank."""
        paths, handles = self._own_paths, self._own_handles
        problems: list[str] = []
        calls = np.zeros(self._meta.ranks, dtype=np.int64)
        users = np.zeros(0, np.int64)
        facts: dict[tuple[str, ...], int] = {}
        probes = Probes(self._meta.functions)
        nested = False
        unbelieved: set[str] = set()
        lost = np.ones(self._meta.ranks, dtype=np.bool_)
        with_tables = [rank for rank in self._source.ranks_with("cst", "cfg") if rank < self._meta.ranks]
        lost[with_tables] = False
        absent = np.flatnonzero(lost)[:_MAX_REPORTED].tolist()
        reported = 0
        # A wrong number of ranks may claim millions without files, which need not be searched.
        for rank in sorted([*with_tables, *absent]):
            try:
                signatures, grammar, counts = self._rank_tables(rank)
            except TraceError as error:
                lost[rank] = True
                reported += 1
                if reported <= _MAX_REPORTED:
                    problems.append(f"rank {rank}: left out, {error}")
                continue
            # Each of many ranks may have different wrong numbers, so only the first fault of each function is kept.
            signatures.unbelieved = {n: t for n, t in signatures.unbelieved.items() if n not in unbelieved}
            unbelieved.update(signatures.unbelieved)
            problems += [p for p in signatures.problems if p not in problems]
            calls[rank] = grammar.calls
            nested = nested or bool(signatures.depth.max(initial=0) > 0)
            probes.see(signatures, grammar.terminals)
            used = signatures.file[grammar.terminals]
            users = summed(users, np.bincount(distinct(used[used >= 0])))
            for name, args, count in counts.facts(grammar.occurrences(len(signatures))):
                facts[(name, *args)] = facts.get((name, *args), 0) + count
        if lost.sum() > _MAX_REPORTED:
            problems.append(f"ranks {some_ranks(np.flatnonzero(lost))}: left out")
        return Tables(
            paths=paths.paths,
            handles=len(handles),
            calls=calls,
            users=summed(users, np.zeros(len(paths.paths), np.int64)),
            probes=probes.only_probed(len(paths.paths)),
            of_rank=np.full(self._meta.ranks, -1, dtype=np.int64),
            pattern_position=np.zeros((self._meta.ranks, 0), dtype=np.int64),
            facts=[(k[0], list(k[1:]), c) for k, c in facts.items()],
            problems=problems,
            nested=nested,
        )

    def _rank_tables(self, rank: int) -> tuple[Signatures, Grammar, TableCounts]:
        signatures, counts = self._call_tables.read(f"{rank}.cst", self._own_paths, self._own_handles)
        content, where = self._call_tables.content(f"{rank}.cfg"), self._source.where(f"{rank}.cfg")
        grammar = decode_grammar(content, terminals=len(signatures), where=where)
        size = grammar.symbols + len(signatures) + _OVERHEAD
        if self._cached_symbols + size <= _CACHED_SYMBOLS:
            self._cached_symbols += size
            self._cache[rank] = signatures, grammar
        return signatures, grammar, counts

    def of_rank(self, rank: int, tables: Tables) -> tuple[Signatures, Grammar] | None:
        """Signatures and grammar of a rank; None if it has no calls, or they are lost."""
        if tables.shared is not None and tables.grammars is not None:
            index = int(tables.of_rank[rank])
            grammar = tables.grammars[index] if index >= 0 else None
            return None if grammar is None else (tables.shared, grammar)
        if rank in self._cache:
            return self._cache[rank]
        if not tables.calls[rank]:
            return None
        signatures, grammar, _ = self._rank_tables(rank)
        return signatures, grammar


def group_positions(kinds: Ints, of_rank: Numbers) -> Ints:
    """Find r of `a*r+b` for every rank and function: shape (ranks, functions with such patterns).

    For each function, ranks with the same number of distinct signatures form a group, in which they are numbered
    from 0 by ascending rank.

    Parameters
    ----------
    kinds
        Number of distinct signatures of each function, by grammar: shape (grammars, functions).
    of_rank
        Grammar of each rank, -1 for none.
    """
    functions = kinds.shape[1]
    positions = np.zeros((len(of_rank), functions), dtype=np.int64)
    for function in range(functions):
        group = np.where(of_rank >= 0, kinds[of_rank, function], -1)
        order = np.argsort(group, kind="stable")
        first = np.searchsorted(group[order], group[order])
        positions[order, function] = np.arange(len(of_rank)) - first
    return positions
