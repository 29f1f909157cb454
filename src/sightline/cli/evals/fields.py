"""Values with all their fields, for programs that read JSON: what is as usual stands there too."""

from typing import cast

import msgspec

from sightline.model.json import Json


def in_full(value: object) -> Json:
    """The value as JSON."""
    if isinstance(value, msgspec.Struct):
        return {name: in_full(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [in_full(each) for each in value]
    return cast(Json, msgspec.to_builtins(value))
