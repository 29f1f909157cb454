"""What is said between Sightline and a worker, one JSON text on a line."""

from typing import TypeAlias

import msgspec

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.tool import Definition
from sightline.model.json import Json


class Load(msgspec.Struct, frozen=True, tag="load"):
    """The text of the file, so that every worker has the same one however the file changes meanwhile."""

    source: str


class RunFunction(msgspec.Struct, frozen=True, tag="run"):
    """Call a function of it."""

    name: str
    arguments: dict[str, Json] | str


class FileLoaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The tools that the file has."""

    definitions: tuple[Definition, ...]


class FileBroken(msgspec.Struct, frozen=True, omit_defaults=True, tag="broken"):
    """Why the file cannot be used; 0 is no line in particular."""

    message: str
    line: int = 0
    hint: str = ""


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """What came of a call."""

    outcome: ToolOutcome


Order: TypeAlias = Load | RunFunction
Answer: TypeAlias = FileLoaded | FileBroken | Ran
