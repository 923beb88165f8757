"""FLD002: an installed Python environment that many processes load from a shared file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import folder_of_pattern, is_software
from vani.advisors.folder_table import searches
from vani.advisors.rule import Finding, Rule, Target, Verdict, figures
from vani.models.io_time import calls_s, lookup_share
from vani.models.run_time import of_profile_s
from vani.models.staging import is_near
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import LookUp, NamePattern, Profile
    from vani.schema.system import System

# Folders of the machine, which are on its nodes unless a system description puts them elsewhere.
_OF_THE_MACHINE = ("/usr/", "/bin/", "/opt/python", "/lib")


class SharedEnvironment(Rule):
    """Programs load a Python environment from a shared file system, or search many folders for libraries.

    Looks at
        Name patterns of installed Python software (`.../lib/pythonX.Y/**`, `.../site-packages/**`) over all files of
        the run: at least `min_files` files, loaded by at least `min_processes` processes, with at least
        `min_share` of the I/O time. Search paths along which a loader looks for libraries or modules, where these
        look-ups take `min_share` of the time of I/O and look-ups.
    Why
        An import looks for each module in several folders and opens it: thousands of small requests to the metadata
        server for each process that starts, however few bytes the modules have, and all processes start at once.
    Recommends
        Put the environment near the nodes: unpack it from one archive into memory or a disk of each node when the job
        begins, or run from an image (SquashFS, Apptainer) that the node opens once. If neither is possible, import on
        one process per node, or list fewer folders in `sys.path`. For libraries: one folder (an RPATH, or a view of
        Spack), or a tool that loads them for all processes (Spindle).
    Stays silent when
        Patterns are not known; no environment is loaded from a shared file system, or few files of it by few processes.
    Source
        Frings et al., Massively parallel loading (ICS 2013); Python's import system (docs.python.org, "The import
        system"); Apptainer and SquashFS documentation.
    Example
        Six Pythons import numpy, pandas and pyarrow from /lustre/sw/env: 17,940 `newfstatat` take 64 % of the I/O
        time:

            srun /lustre/sw/env/bin/python train.py                                             # before
            srun --ntasks-per-node=1 sh -c "mkdir -p /dev/shm/env && tar -xzf env.tar.gz -C /dev/shm/env"   # after
            srun /dev/shm/env/bin/python train.py
    """

    id = "FLD002"
    settles = "location"
    sources = ("Frings et al., Massively parallel loading (ICS 2013)", "docs.python.org, The import system")

    # Our choice: a script without packages loads fewer modules.
    min_files = 100
    # Our choice: a single process starts in a second or two.
    min_processes = 4
    # Our choice: less does not show.
    min_share = 0.05

    def check(self, profile: Profile, system: System) -> Verdict:
        searched = [
            self._searched(at, row, profile)
            for at, row, search in searches(profile)
            if search == "library_search"
            and not row.folder.endswith("/**")
            and not row.folder.startswith(_OF_THE_MACHINE)
            and not is_near(row.folder, profile, system)
            and (lookup_share(profile, row) or 0.0) >= self.min_share
        ]
        loaded = self._loaded(profile, system)
        return [*searched, *([] if isinstance(loaded, str) else loaded)] or loaded

    def _searched(self, at: int, row: LookUp, profile: Profile) -> Finding:
        path, share = row.search_path or [row.folder], lookup_share(profile, row)
        modules = row.failed is None or 2 * row.failed < row.calls
        what = "modules" if modules else "libraries"
        return Finding(
            target=Target("directory", row.folder, profile.apps[0].name if len(profile.apps) == 1 else None),
            reason=f"{format_count(row.calls)} look-ups search {format_count(row.folders)} folders for {what}, from "
            f"{path[0]} to {path[-1]}; they take {format_share(share)} of the time of I/O and look-ups"
            + (f", and {format_count(row.failed)} find nothing" if row.failed else "")
            + ". Every process that starts repeats them at the metadata server. The gain is not known: measure a start "
            "with one folder.",
            confidence=0.8,
            touched_s=(row.time_s or 0.0) / max(1, profile.workflow.processes),
            recommended={"folders": 1},
            current={"folders": row.folders, "lookups": row.calls},
            evidence=figures(row, f"lookups[{at}]", "folder", "folders", "calls", "failed", "time_s"),
            apply="put all packages into one environment, with one folder in PYTHONPATH or sys.path,\n"
            "  or unpack them on each node from one archive (see conda-pack), or start from an image (Apptainer)"
            if modules
            else "link the program with an RPATH to one folder with all libraries (a view of Spack: `spack view\n"
            "  symlink DIR PACKAGES`, or `patchelf --set-rpath DIR PROGRAM`), and unset LD_LIBRARY_PATH;\n"
            "  or load them once for all processes with Spindle (`spindle srun PROGRAM`), or copy them to each node",
        )

    def _loaded(self, profile: Profile, system: System) -> Verdict:
        if profile.patterns is None:
            return f"patterns are not known ({profile.provenance.get('patterns', 'the trace has no names')})"
        loaded = [
            (position, pattern)
            for position, pattern in enumerate(profile.patterns or ())
            if is_software(pattern.pattern) and _is_shared(pattern, profile, system)
        ]
        large = [row for row in loaded if row[1].files >= self.min_files]
        if not large:
            number = max((pattern.files for _, pattern in loaded), default=0)
            return (
                "no Python environment is loaded from a shared file system"
                if not loaded
                else f"{format_count(number)} files of a Python environment are loaded, fewer than "
                f"{format_count(int(self.min_files))}"
            )
        many = [row for row in large if _starts(row[1]) >= self.min_processes]
        if not many:
            return f"fewer than {format_count(int(self.min_processes))} processes load an environment"
        costly = [row for row in many if _share(row[1], profile) >= self.min_share]
        if not costly:
            share = max(_share(pattern, profile) for _, pattern in many)
            return f"loading an environment takes {format_share(share)} of the I/O time"
        return [self._finding(position, pattern, profile) for position, pattern in costly]

    def _finding(self, position: int, pattern: NamePattern, profile: Profile) -> Finding:
        root = folder_of_pattern(pattern.pattern)
        # Pack the whole environment, whose modules are in lib/pythonX.Y/site-packages.
        prefix = quoted_path(root.partition("/lib/python")[0]) or "ENVIRONMENT"
        share = _share(pattern, profile)
        app = profile.apps[0].name if len(profile.apps) == 1 else None
        return Finding(
            target=Target("directory", root, app),
            reason=f"{format_count(_starts(pattern))} processes load {format_count(pattern.files)} files of {root}, in "
            f"{format_count(pattern.opens)} opens, which take {format_share(share)} of the I/O time; looking for "
            "modules that are elsewhere comes on top. Unpacked on each node from one archive, or in one image file, "
            "the environment costs the shared file system one file per node. The gain is not known: measure "
            "one start from there.",
            confidence=0.7,
            touched_s=of_profile_s(profile, "total") * share,
            recommended={"location": "near the nodes, or one image file"},
            current={"files": pattern.files, "opens": pattern.opens},
            evidence=figures(
                pattern, f"patterns[{position}]", "pattern", "files", "opens", "processes", "time_s", "metadata_time_s"
            ),
            apply=f"once: pack the environment (`conda-pack -p {prefix} -o env.tar.gz`, or\n"
            f"  `tar -czf env.tar.gz -C {prefix} .`), or build an image\n"
            f"  (`mksquashfs {prefix} env.sqsh`, `apptainer build env.sif env.def`)\n"
            "in the job script, before the program: unpack it on each node (`mkdir -p /dev/shm/env && tar -xzf\n"
            "  env.tar.gz -C /dev/shm/env`) and start Python from there, or start it inside the image",
            files=frozenset(file.path for file in profile.files if file.path.startswith(root + "/")),
        )


def _is_shared(pattern: NamePattern, profile: Profile, system: System) -> bool:
    path = pattern.pattern
    return not path.startswith(_OF_THE_MACHINE) and not is_near(path, profile, system)


def _starts(pattern: NamePattern) -> int:
    """Least number of processes that load the environment: each opens a module once."""
    return max(pattern.processes or 0, pattern.opens // max(1, pattern.files))


def _share(pattern: NamePattern, profile: Profile) -> float:
    """Share of the I/O time, 0..1, that the files take, or their opens' share of all calls if times are unknown."""
    whole = calls_s(profile.workflow.io)
    if pattern.time_s is not None and whole:
        return min(1.0, pattern.time_s / whole)
    return min(1.0, pattern.opens / max(1, profile.workflow.io.ops.all))
