"""Where something stands in a file that a person wrote, and what is wrong or odd there."""

from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["error", "warning"]


class SuitePlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file, relative to the folder that the run was started for, and a line and column that count from 1."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class SuiteProblem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Something in a suite that keeps it from running (`error`) or that a person should know (`warning`).

    `path` is the way to it in the document (`tests[2].input[0].content`), `suggestion` what to write instead. An error
    with a `case` keeps only that case from running.
    """

    place: SuitePlace
    path: str
    message: str
    suggestion: str = ""
    severity: Severity = "error"
    case: str = ""
