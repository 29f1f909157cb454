"""The rows that docs/reference/configuration.md must have for a struct, taken from the struct itself."""

from pathlib import Path

import msgspec
from msgspec import inspect

from sightline.catalog.checks import describe_type, fields_of, type_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def missing_rows(heading: str, struct: type[msgspec.Struct]) -> list[str]:
    """The beginnings of rows that the section under this heading lacks."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [row for row in rows(struct) if f"\n{row}" not in section]


def rows(struct: type[msgspec.Struct]) -> list[str]:
    """Key, type and default of each field, as a row of the table begins."""
    kind = type_of(struct)
    assert isinstance(kind, inspect.StructType)
    return [
        f"| `{name}` | {describe_type(field.type)} | {_default(field)} | " for name, field in fields_of(kind).items()
    ]


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct):
        return "its own"
    return "none" if value in (None, "", (), {}) else f"`{str(value).lower() if isinstance(value, bool) else value}`"
