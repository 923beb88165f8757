"""POS012: much data goes through stdio, whose buffer is for text and small records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.access_table import layers_of
from vani.advisors.data_files import Access, Group, Item, data_files, not_used
from vani.advisors.rule import Answer, Evidence, Finding, Rule, Target, Verdict, figures
from vani.advisors.small_requests import SMALL, aggregated, moved_both_ways
from vani.models.savings import LARGE
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Interface, Profile
    from vani.schema.system import System


class StdioData(Rule):
    """A large part of an app's data goes through stdio (`fread`, `fwrite`) in pieces below one request to a server.

    Looks at
        Bytes that each app moves through stdio, at least `min_bytes` and `min_share` of its bytes, and the size that
        moves most of them, below `max_piece`.
    Why
        The C library copies each piece through a buffer of some KiB, which it drops at every seek. Data read or written
        reaches the file system in pieces of that buffer, and no process knows of another's.
    Recommends
        `read`, `write` or MPI-IO in pieces of 4 MiB for data, or a buffer of that size (`setvbuf`). Text and logs may
        stay in stdio.
    Stays silent when
        Little goes through stdio; pieces are large, and bypass its buffer; sizes are not known; most of it is moved in
        many small consecutive requests (POS002).
    Source
        Drishti (Bez et al. 2022): stdio moves more than 10 % of the bytes. Gain: `vani/models/savings.py`.
    Example
        8 GB of particles in `fread`s of 256 KiB: 32,768 requests, where 2,048 of 4 MiB are enough.

            fread(block, 1, 262144, file);    // before: requests of 256 KiB
            setvbuf(file, NULL, _IOFBF, 4194304);    // after, before the first access
            fread(block, 1, 262144, file);
    """

    id = "POS012"
    needs = ("interfaces",)
    settles = "request-size"
    sources = ("Drishti, Bez et al. 2022",)

    # Drishti's threshold for the share of stdio.
    min_share = 0.1
    # Our choice: at the 300 MB/s of one process (OPRAEL) a twentieth of a second.
    min_bytes = 16 * MiB
    # One RPC of Lustre; glibc reads and writes what exceeds its buffer without a copy (general knowledge).
    max_piece = 1 * MiB
    # Limits of POS002, whose findings are not repeated.
    named_operations = 1000
    named_piece = SMALL  # see named_operations

    def check(self, profile: Profile, system: System) -> Verdict:
        apps = {app.name: (number, app) for number, app in enumerate(profile.apps)}
        layers = [
            (*apps[layer.app], index, layer)
            for index, layer in enumerate(profile.interfaces or ())
            if layer.layer == "stdio" and layer.app in apps
        ]
        streams = {path for path, of in layers_of(profile).items() if "stdio" in of}
        data = data_files(profile, lambda file: file.path in streams)
        judged = (self._judge(*row, data, system) for row in layers)
        return self.among(judged, not_used(profile, "stdio"), most=3)

    def _judge(
        self, number: int, app: App, index: int, layer: Interface, data: list[Item], system: System
    ) -> Answer:
        read, written, piece = layer.bytes.read or 0, layer.bytes.written or 0, layer.granularity.data
        moved, total = read + written, app.io.bytes.total
        items = [item for item in data if app.name in item.file.apps]
        if layer.bytes.read is None and layer.bytes.written is None:
            return f"interfaces[{index}].bytes are not known; supply a trace with sizes"
        if moved < self.min_bytes or (total and moved < self.min_share * total):
            return f"{app.name} moves {format_bytes(moved)} through stdio"
        if piece is None:
            return f"interfaces[{index}].granularity.data is not known; supply a trace with sizes"
        if piece >= self.max_piece:
            return f"pieces of {app.name} have {format_bytes(self.max_piece)} or more, and pass the buffer by"
        if not items:
            return f"no listed data file of {app.name} is accessed through stdio"
        if moved >= self.named_operations * piece and piece < self.named_piece and layer.access_pattern != "random":
            return f"most of what {app.name} moves through stdio are small requests: see POS002"
        group = Group(app if all(item.file.apps == [app.name] for item in items) else None, "", items)
        before, rows = group.data_s(), [moved_both_ways(item) for item in items]
        return Finding(
            target=Target("app", None, app.name),
            reason=f"{app.name} moves {format_bytes(moved)} of data through stdio "
            f"({format_share(moved / total if total else None)} of its bytes, {format_count(len(items))} of the listed "
            f"files), most of it in pieces of {format_bytes(piece)}, each copied through a buffer. Pieces of "
            f"{LARGE // MiB} MiB by `read` and `write` need none.",
            confidence=0.5,
            touched_s=before,
            recommended={"request_bytes": LARGE},
            current={"stdio_bytes": moved, "piece": piece},
            evidence=[
                *figures(layer, f"interfaces[{index}]", "bytes.read", "bytes.written", "granularity.data"),
                Evidence(f"apps[{number}].io.bytes.total", total),
                *group.figures("path"),
            ],
            gain=aggregated("data_time_s", before, rows, Access(items[0], read > written), system),
            apply=f"in the program, for data: read and write in pieces of {LARGE} bytes by read(2) and write(2) or "
            "MPI-IO;\n"
            f"  or right after fopen:  static char space[{LARGE}];  setvbuf(file, space, _IOFBF, sizeof space);",
            files=group.paths,
        )
