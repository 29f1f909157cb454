"""The type of any JSON value; the one place where the shape of foreign data is not known."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec cannot decode into a recursive alias, and decodes JSON into nothing else anyway

JsonObject: TypeAlias = dict[str, Json]
