"""Giving a Python function its arguments: what JSON had to spell becomes what the hints say."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import get_type_hints

import msgspec

from sightline.model.json import Json


def convert_arguments(function: Callable[..., object], arguments: Mapping[str, Json] | str) -> dict[str, object]:
    """The arguments as the function's hints want them: a dataclass, a date, a set where JSON has none. A text is the
    only argument of a tool for free text.

    The loop has held them to the schema of the same hints; what still does not fit raises msgspec.ValidationError.
    """
    if isinstance(arguments, str):
        return {next(iter(signature(function).parameters)): arguments}
    hints = get_type_hints(function)
    return {name: msgspec.convert(value, hints[name]) if name in hints else value for name, value in arguments.items()}
