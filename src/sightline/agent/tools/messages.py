"""What is said between Sightline and a worker, one JSON text on a line."""

from typing import TypeAlias

import msgspec

from sightline.agent.core.output import Outcome
from sightline.agent.core.tool import Definition
from sightline.model.json import Json


class Load(msgspec.Struct, frozen=True, tag="load"):
    """The text of the file, so that every worker has the same one however the file changes meanwhile."""

    source: str


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Call a function of it."""

    name: str
    arguments: dict[str, Json] | str


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The tools that the file has."""

    definitions: tuple[Definition, ...]


class Broken(msgspec.Struct, frozen=True, omit_defaults=True, tag="broken"):
    """Why the file cannot be used; 0 is no line in particular."""

    message: str
    line: int = 0
    hint: str = ""


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """What came of a call."""

    outcome: Outcome


Order: TypeAlias = Load | Run
Answer: TypeAlias = Loaded | Broken | Ran
