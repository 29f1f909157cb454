"""What a reader asks for while it reads, and what it hands back at the end."""

from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.suite import Suite

Wanted: TypeAlias = Literal["content", "presence", "listing"]


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file is asked for, by its path below the folder. It is answered with bytes, or with None if there is none.

    `content`: what stands in it. `presence`: any bytes will do, for it is not read yet. `listing`: the path is that of
    a folder, and the answer the paths of the files below it, relative to it, one in a line.
    """

    path: str
    wanted: Wanted = "content"


class SuiteReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """A suite, unless an error keeps it from running, and all that was found on the way."""

    suite: Suite | None = None
    problems: tuple[SuiteProblem, ...] = ()
