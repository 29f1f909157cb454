"""The type of any JSON value, the one place where the shape of foreign data is unknown, and the base class of all
values."""

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec cannot decode into a recursive alias, and decodes JSON into only these types anyway

JsonObject: TypeAlias = dict[str, Json]


class Value(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"
):
    """A value that may have a place in a wire document.

    `at` is the JSON pointer of that place, empty for a value that was composed here. `extras` are the fields beside
    those that we model; they are written back unchanged to the dialect that they came from.
    """

    at: str = ""
    extras: dict[str, Json] = {}
