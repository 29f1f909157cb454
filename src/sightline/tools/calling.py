"""Giving a Python function its arguments: what JSON had to spell becomes what the hints say."""

from collections.abc import Callable, Mapping
from typing import get_type_hints

import msgspec

from sightline.model.json import Json


def typed(function: Callable[..., object], arguments: Mapping[str, Json]) -> dict[str, object]:
    """The arguments as the function's hints want them: a dataclass, a date, a set where JSON has none.

    The loop has held them to the schema of the same hints; what still does not fit raises msgspec.ValidationError.
    """
    hints = get_type_hints(function)
    return {name: msgspec.convert(value, hints[name]) if name in hints else value for name, value in arguments.items()}
