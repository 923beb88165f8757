"""Terms in a report, each explained in a sentence or two for a scientist who has never tuned storage.

Sources: the definitions of `docs/profile.md`; the Lustre Operations Manual (stripe, target, layout); Thakur, Gropp
and Lusk 1999 (collective buffering, data sieving); the Vani paper (phases, burst buffers).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True)
class Term:
    """A term with its meaning; `phrases` are all the ways in which texts write it."""

    id: str
    name: str
    meaning: str
    phrases: tuple[str, ...]


_TERMS: Final = """
aggregator; aggregators
  A process that collects the data of its neighbours and does the file access for all of them.
bandwidth
  Bytes per second while at least one process reads (or writes): bytes divided by the time in which any process is
  in such a call.
burst buffer; burst buffers
  Fast storage between compute nodes and the parallel file system, in the node or shared by the job. Files there
  are usually lost when the job ends, unless it is copied out.
chunk; chunks; chunked; chunking
  Piece in which HDF5 or NetCDF stores a dataset. A chunk is read and written whole.
collective; collective calls; collectively
  A call that all processes make together, so that the library can combine their accesses. The opposite is
  independent.
collective buffering
  In MPI-IO: processes first exchange data so that a few of them make few large accesses instead of all making
  many small ones.
consecutive; consecutive access; consecutive accesses
  An access that begins exactly where the one before of the same process in the same file ended. File systems are
  fastest with these.
data operation; data operations
  A call that moves bytes of a file: read, write and their variants.
data sieving
  In MPI-IO: one large access with holes in it instead of many small ones; bytes in the holes is read and thrown
  away.
dataset; data set; datasets
  Here: files whose names differ only in numbers (out_00000, out_00001, ...), or files of one kind in one folder.
  One row of the file table represents all of them.
dependency; dependencies
  An app or a process reads a file that another one wrote before.
expected gain
  A model's prediction for the recommendation: time before and after, and in parentheses the range of the factor.
  Where there is no number, the direction and the reason. The method and its sources are given with each
  recommendation.
file per process; file-per-process
  Each process writes or reads its own file: no waiting for each other's locks, but many files to create and to
  open.
flushing; flush; flushes
  A call that forces out earlier writes: fsync and fdatasync wait until it is on storage, fflush gives it to the
  operating system. Programs flush to be safe from a crash, and pay with waiting.
footprint
  Distinct bytes of files that were touched. 100 processes that read the same 4 KiB move 400 KiB and have a
  footprint of 4 KiB.
hint; hints; MPI-IO hint; MPI-IO hints
  A setting that a program or an environment variable hands to MPI-IO.
I/O node; I/O nodes; forwarding layer
  A node between compute nodes and the file system that makes file accesses on behalf of others (forwarding).
I/O time
  Time in which a process is inside a file-system call; overlapping calls of threads count once. For several
  processes it is summed, so it can exceed the run time.
imbalance
  Some processes spend much more time in I/O, or move many more bytes, than the mean. The others usually wait for
  the slowest.
layer; layers
  A library on the way from program to storage: HDF5 and NetCDF call MPI-IO, MPI-IO calls POSIX. Bytes are counted
  once, at the bottom.
median
  Half of the values are at most this large.
metadata operation; metadata operations; metadata; metadata calls
  A call about files that neither moves nor flushes data: open, close, stat, seek, mkdir, rename, ... On a
  parallel file system one server, or a few, must answer all of them.
middleware
  Software between programs and the file system, such as caches and burst-buffer services.
parallel file system
  A file system such as Lustre or GPFS that spreads files over many servers.
phase; phases
  A stretch of an app's run in which its processes do I/O: until all of them pause for longer, most of them begin
  the same again, or they turn from reading to writing or back. The time between is computation or communication.
  Similar phases are one row.
POSIX
  The calls that the operating system offers for files: open, read, write, lseek, ...
progressive file layout; PFL; composite layout
  A Lustre layout with several components: small files are on few targets, and a file that grows gets more.
provenance
  Where a value is from, or why it is unknown.
random; random access; random accesses
  An access that begins neither behind the one before nor at a regular distance. The hardest pattern for file
  systems.
role; intermediate; temporary
  Input: only read. Output: written. Intermediate: written by one process or app, read by another later.
  Temporary: removed in the end.
sequential; sequential access
  An access that begins somewhere behind the end of the one before.
severity
  How much of the run a recommendation could save: high 25 %, medium 10 %, low 1 % and more; info: less, or I/O
  hardly matters.
shared file; shared files
  A file that two or more processes used. Writes of several processes need locks of the file system.
STDIO
  The calls of the C library that buffer in memory: fopen, fread, fprintf, ...
strided; strided access
  Accesses at a constant distance from each other, such as one column of a matrix stored by rows.
stripe count
  On Lustre, the number of targets over which a file is spread: more of them can serve a large shared file at
  once, but each costs a message for every open.
stripe size; stripes; stripe
  On Lustre, how many bytes go to one target before the next one's turn.
target; targets; OST; OSTs
  On Lustre, a storage target (OST): one of the units over which files are spread.
transfer size; transfer sizes
  Bytes that one read or write call requests. Every call costs about the same time on top of its bytes, so small
  ones waste most of it.
"""
"""A term and its other forms, then its meaning, which is indented."""


def _terms() -> Iterator[Term]:
    for forms, meaning in re.findall(r"^(\S.*)\n((?:  .+\n)+)", _TERMS, re.MULTILINE):
        name, *others = forms.split("; ")
        id_ = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
        yield Term(id_, name, " ".join(meaning.split()), (name, *others))


GLOSSARY: Final = tuple(sorted(_terms(), key=lambda term: term.name.lower()))


def marked(text: str) -> Iterator[tuple[str, Term | None]]:
    """Split a text into pieces; the first mention of a term comes with the term."""
    seen: set[str] = set()
    end = 0
    pattern, terms = _phrases()
    for match in pattern.finditer(text):
        term = terms[match[0].lower()]
        if term.id in seen:
            continue
        seen.add(term.id)
        yield text[end : match.start()], None
        yield match[0], term
        end = match.end()
    yield text[end:], None


@cache
def _phrases() -> tuple[re.Pattern[str], dict[str, Term]]:
    terms = {phrase.lower(): term for term in GLOSSARY for phrase in term.phrases}
    # Match the longest phrase first: "stripe count" is not "stripe". Nothing inside a path, a name or a
    # command matches.
    longest = sorted(terms, key=lambda phrase: (-len(phrase), phrase))
    either = "|".join(map(re.escape, longest))
    return re.compile(rf"(?<![\w/.=-])(?:{either})(?![\w/=-]|\.\w)", re.IGNORECASE), terms
