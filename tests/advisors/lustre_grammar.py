"""The grammar of the commands that rules print for Lustre and MPI-IO: `lfs`, ROMIO's and Cray's hints.

Sources: lfs-setstripe(1), lfs-migrate(1), lfs-setdirstripe(1) of the Lustre release and the Lustre manual,
chapters 19 and 20; ROMIO's users guide; HPE's intro_mpi. Only documented forms are accepted.
"""

from __future__ import annotations

import re
import shlex

KiB, GiB = 1 << 10, 1 << 30
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
UNIT = 64 * KiB
MAX_STRIPES = 2000
MAX_DOM = GiB
END = 1 << 62

# Options with their argument; None: the option has none.
LONG = {
    "--stripe-count": "-c", "--overstripe-count": "-C", "--stripe-size": "-S", "--stripe-index": "-i", "--ost": "-o",
    "--pool": "-p", "--layout": "-L", "--component-end": "-E", "--ext-size": "-z", "--mirror-count": "-N",
}  # fmt: skip
STRIPE = set("cCSiopL") | {"z"}

ROMIO = {
    "cb_buffer_size", "cb_nodes", "cb_config_list", "romio_cb_read", "romio_cb_write", "romio_ds_read",
    "romio_ds_write", "ind_rd_buffer_size", "ind_wr_buffer_size", "romio_no_indep_rw", "striping_factor",
    "striping_unit", "start_iodevice", "romio_lustre_co_ratio", "romio_lustre_coll_threshold",
    "romio_lustre_cb_ds_threshold", "romio_lustre_ds_in_coll", "direct_read", "direct_write",
    "romio_synchronized_flush", "nc_header_align_size", "nc_var_align_size", "nc_num_subfiles",
}  # fmt: skip
CRAY = ROMIO | {
    "cray_cb_nodes_multiplier", "cray_cb_write_lock_mode", "direct_io", "aggregator_placement_stride",
}  # fmt: skip
SWITCHES = {"romio_cb_read", "romio_cb_write", "romio_ds_read", "romio_ds_write"}
BOOLEANS = {"romio_no_indep_rw", "direct_read", "direct_write", "direct_io"}
NUMBERS = {
    "cb_buffer_size", "cb_nodes", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_factor", "striping_unit",
    "romio_lustre_co_ratio", "cray_cb_nodes_multiplier", "nc_header_align_size", "nc_var_align_size",
}  # fmt: skip


class NotLustre(Exception):  # noqa: N818 - what is wrong with a command
    """The command is not in the grammar; the text gives the reason."""


def size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGTP]?)", text, re.IGNORECASE)
    if match is None:
        raise NotLustre(f"{text!r} is not a size")
    return int(match[1]) * UNITS[match[2].upper()]


def number(text: str, least: int, most: int, what: str) -> int:
    if not re.fullmatch(r"-?\d+", text) or not least <= int(text) <= most:
        raise NotLustre(f"{what} {text!r} is not within {least} to {most}")
    return int(text)


def check_command(line: str) -> list[str]:
    """Words of an `lfs` command in the grammar; raises NotLustre for any other."""
    words = shlex.split(line)
    if words[:1] != ["lfs"] or len(words) < 2:
        raise NotLustre("is no lfs command")
    checks = {
        "setstripe": _setstripe,
        "migrate": _setstripe,
        "setdirstripe": _setdirstripe,
        "mkdir": _setdirstripe,
        "getstripe": _ask,
        "df": _ask,
        "osts": _ask,
        "pool_list": _ask,
        "find": _ask,
    }
    if words[1] not in checks:
        raise NotLustre(f"lfs has no {words[1]!r} here")
    checks[words[1]](words[2:])
    return words


def _options(words: list[str], known: str, alone: str = "") -> tuple[list[tuple[str, str | None]], list[str]]:
    found: list[tuple[str, str | None]] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        if name.startswith("--"):
            if name not in LONG:
                raise NotLustre(f"unknown option {name!r}")
            short = LONG[name]
        elif len(name) > 2 and name[1] == "N":
            short, equals, value = "-N", "=", name[2:]
        else:
            short = name
        letter = short[1:]
        if len(letter) != 1 or letter not in known + alone:
            raise NotLustre(f"unknown option {words[at]!r}")
        at += 1
        if letter in alone or (letter == "N" and not equals):
            found.append((letter, None))
        elif equals:
            found.append((letter, value))
        elif at < len(words):
            found.append((letter, words[at]))
            at += 1
        else:
            raise NotLustre(f"option {short} has no value")
    return found, words[at:]


def _setstripe(words: list[str]) -> None:
    options, paths = _options(words, "cCSiopLEzN", "d")
    if len(paths) != 1:
        raise NotLustre(f"names {len(paths)} paths, not one")
    if ("d", None) in options:
        if len(options) > 1:
            raise NotLustre("-d stands alone")
        return
    if not options:
        raise NotLustre("sets nothing")
    _mirrors(options)
    components = _components([one for one in options if one[0] != "N"])
    stripes, begin = 0, 0
    for index, (end, stripe) in enumerate(components):
        if end is not None:
            limit = END if end in ("-1", "eof", "EOF") else size(end)
            if limit <= begin:
                raise NotLustre(f"the end {end} is not behind the end before it")
            if limit != END and limit % UNIT:
                raise NotLustre(f"the end {end} is not a multiple of 64 KiB")
            _dom(stripe, index, limit)
            if limit != END and "S" in stripe and size(stripe["S"]) and limit % size(stripe["S"]):
                raise NotLustre(f"the end {end} is not a multiple of the stripe size {stripe['S']}")
            begin = limit
        elif stripe.get("L") == "mdt":
            raise NotLustre("Data-on-MDT needs a component")
        stripes += _stripe(stripe)
    if components[0][0] is not None and begin != END:
        raise NotLustre("no component ends in eof: writing behind the last one fails")
    if stripes > MAX_STRIPES:
        raise NotLustre(f"{stripes} objects over all components are more than {MAX_STRIPES}")


def _mirrors(options: list[tuple[str, str | None]]) -> None:
    for letter, value in options:
        if letter == "N" and value is not None:
            number(value, 1, 16, "number of mirrors")


def _components(options: list[tuple[str, str | None]]) -> list[tuple[str | None, dict[str, str]]]:
    components: list[tuple[str | None, dict[str, str]]] = []
    for letter, value in options:
        assert value is not None
        if letter == "E":
            components.append((value, {}))
            continue
        if not components:
            components.append((None, {}))
        stripe = components[-1][1]
        if letter in stripe and letter != "o":
            raise NotLustre(f"-{letter} appears twice for one component")
        stripe[letter] = value
    if len(components) > 1 and components[0][0] is None:
        raise NotLustre("options stand before the first -E")
    return components or [(None, {})]


def _dom(stripe: dict[str, str], index: int, limit: int) -> None:
    if stripe.get("L") != "mdt":
        return
    if index:
        raise NotLustre("Data-on-MDT is for the first component only")
    if limit > MAX_DOM:
        raise NotLustre("a Data-on-MDT component has at most 1 GiB")
    if set(stripe) - {"L", "S", "p"} or ("S" in stripe and size(stripe["S"]) != limit):
        raise NotLustre("a Data-on-MDT component has no stripes")


def _stripe(stripe: dict[str, str]) -> int:
    """Check the options of one component, and return its number of objects if it is known."""
    if "c" in stripe and "C" in stripe:
        raise NotLustre("-c and -C exclude each other")
    if stripe.get("L", "raid0") not in ("raid0", "mdt"):
        raise NotLustre(f"unknown layout {stripe['L']!r}")
    count = 0
    for letter in "cC":
        if letter in stripe:
            count = number(stripe[letter], -1, MAX_STRIPES, "stripe count")
    for letter in "Sz":
        if letter in stripe:
            value = size(stripe[letter])
            if value % UNIT or (letter == "S" and value >= 4 * GiB):
                raise NotLustre(f"-{letter} {stripe[letter]} is not a multiple of 64 KiB below 4 GiB")
    if "i" in stripe:
        first = number(stripe["i"], -1, 8149, "first target")
        if first == 0 and count == 1:
            raise NotLustre("-i 0 -c 1 puts everything on target 0")
    if "o" in stripe:
        listed = _targets(stripe["o"])
        if count > 0 and len(listed) != count:
            raise NotLustre(f"{len(listed)} targets are listed for a count of {count}")
        if "i" in stripe and int(stripe["i"]) not in listed:
            raise NotLustre("the first target is not in the list")
    if "p" in stripe and not re.fullmatch(r"[\w.-]{0,15}", stripe["p"]):
        raise NotLustre(f"{stripe['p']!r} is not a pool name")
    return max(count, 0)


def _targets(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise NotLustre(f"{text!r} is not a list of targets")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _setdirstripe(words: list[str]) -> None:
    """lfs-setdirstripe(1): -c count, -i index list, -H hash, -D default of the folder, -X and --max-inherit-rr."""
    at, counted = 0, False
    while at < len(words) and words[at].startswith("-"):
        name = words[at].partition("=")[0]
        takes = {"-c": True, "--mdt-count": True, "-i": True, "--mdt-index": True, "-H": True, "--mdt-hash": True,
                 "-D": False, "--default": False, "-d": False, "-X": True, "--max-inherit": True,
                 "--max-inherit-rr": True, "-m": True, "--mode": True, "-p": False}  # fmt: skip
        if name not in takes:
            raise NotLustre(f"unknown option {words[at]!r}")
        value = words[at].partition("=")[2]
        if takes[name] and "=" not in words[at]:
            at += 1
            value = words[at] if at < len(words) else ""
        if name in ("-c", "--mdt-count"):
            number(value, -1, MAX_STRIPES, "number of metadata targets")
            counted = True
        elif name in ("-i", "--mdt-index") and not re.fullmatch(r"-1|\d+(?:[,-]\d+)*", value):
            raise NotLustre(f"{value!r} is not a list of metadata targets")
        elif name in ("-H", "--mdt-hash") and value not in ("crush", "crush2", "fnv_1a_64", "all_char"):
            raise NotLustre(f"unknown hash {value!r}")
        elif name in ("-X", "--max-inherit", "--max-inherit-rr"):
            number(value, -1, 255, "depth")
        at += 1
        counted = counted or name in ("-i", "--mdt-index", "-d")
    if len(words) - at != 1:
        raise NotLustre(f"names {len(words) - at} paths, not one")
    if not counted:
        raise NotLustre("sets nothing")


def _ask(words: list[str]) -> None:
    if not words:
        raise NotLustre("asks about nothing")


def check_hint(name: str, value: str, known: set[str] = ROMIO) -> None:
    """Check one MPI-IO hint."""
    if name not in known:
        raise NotLustre(f"unknown hint {name!r}")
    if name in SWITCHES and value not in ("enable", "disable", "automatic"):
        raise NotLustre(f"{name} is {value!r}")
    if name in BOOLEANS and value not in ("true", "false"):
        raise NotLustre(f"{name} is {value!r}")
    if name in NUMBERS and not re.fullmatch(r"-?\d+", value):
        raise NotLustre(f"{name} is {value!r}")
    if name == "striping_unit" and int(value) % UNIT:
        raise NotLustre(f"striping_unit {value} is not a multiple of 64 KiB")


def check_cray_hints(text: str) -> None:
    """Check `pattern:key=value:key=value,pattern2:...`; commas may appear only between patterns."""
    for group in re.split(r",(?=[^=]*:)", text):
        pattern, *pairs = group.split(":")
        if not pattern or not pairs:
            raise NotLustre(f"{group!r} is no pattern with hints")
        for pair in pairs:
            name, found, value = pair.partition("=")
            if not found:
                raise NotLustre(f"{pair!r} is no hint")
            check_hint(name, value, CRAY)
