"""centre.toml: where the logs of a centre are, its file system, and who may see what."""

import json
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from vani.centre.history.runs.store import Store
from vani.errors import InputError
from vani.schema.document import explained, read_text
from vani.schema.model import Model
from vani.schema.settings import Option, Settings
from vani.schema.syntax.toml_reader import TOML
from vani.units import MiB

DEFAULT_FILE: Final = "centre.toml"
_Name = Annotated[str, Field(min_length=1, max_length=4096)]
_Stripes = Annotated[int, Field(ge=-1, le=65_536)]


class SharedFileSystem(Model):
    """The file system whose layout is advised on."""

    mount: _Name = Field(description="its mount point")
    targets: Annotated[int, Field(ge=1, le=65_536)] | None = Field(default=None, description="number of OSTs")
    stripe_count: _Stripes = Field(default=1, description="stripes of a new file; -1: all")
    stripe_size: int = Field(default=MiB, ge=65_536, description="bytes of its stripes")


class CentreConfiguration(Model):
    """Everything that `vani centre` needs to know."""

    darshan: _Name = Field(description="folder of Darshan's logs")
    jobs: _Name | None = Field(default=None, description="`sacct`, or a file that it printed")
    history: _Name = Field(description="file or URL of the history")
    group: _Name | None = Field(default=None, description="group that may read the history; else its owner alone")
    system: _Name | None = Field(default=None, description="bundled name or system.yaml of the machine")
    every_s: float = Field(default=3600.0, ge=1, description="seconds between two imports")
    address: _Name = Field(default="127.0.0.1", description="address of the pages and metrics")
    port: int = Field(default=8600, ge=0, le=65_535, description="their port")
    names: tuple[_Name, ...] = Field(default=(), description="host names by which browsers may address them")
    open: bool = Field(default=False, description="true: everyone who reaches the pages may read them, without a token")
    hook: _Name | None = Field(default=None, description="folder of what the hook in jobs sets; without it, no hook")
    file_system: SharedFileSystem | None = Field(default=None, description="the shared file system")

    def store(self) -> Store:
        """The history, readable by its owner, or by a group."""
        return Store(self.history, group=self.group)


class ConfigurationSettings(Settings):
    """The file of a centre."""

    config: Annotated[Path, Option(metavar="FILE", envvar="VANI_CENTRE")] = Field(
        Path(DEFAULT_FILE), description="The centre's file, from `vani centre init`."
    )


def load(path: Path) -> CentreConfiguration:
    """Read a centre.toml.

    Raises
    ------
    InputError
        There is none, or it is wrong; the message names the line.
    """
    if not path.exists():
        raise InputError("is not there", where=path, todo="make it with `vani centre init`, or name it with --config")
    text = read_text(path)
    tree: Any = TOML.parse(text, str(path))
    try:
        return CentreConfiguration.model_validate(tree)
    except ValidationError as error:
        raise explained(error, CentreConfiguration, tree, str(path), lambda at: TOML.line_of(text, at)) from None


def written(configuration: CentreConfiguration) -> str:
    """A centre.toml with all known settings, each with its meaning."""
    lines = ["# Vani's file for this centre.", *_lines(configuration)]
    if configuration.file_system is not None:
        lines += ["", "[file_system]", *_lines(configuration.file_system)]
    return "\n".join(lines) + "\n"


def _lines(of: Model) -> list[str]:
    fields = type(of).model_fields
    known = [(name, value) for name, value in of if value is not None and not isinstance(value, Model)]
    # Texts, numbers, flags and lists of JSON are TOML as well.
    return [f"{name} = {json.dumps(value)}  # {fields[name].description}" for name, value in known]
