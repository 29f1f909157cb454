"""Options by table: which canonical option stands where in a dialect. What a dialect has no row for is a loss."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from sightline.dialects.fields import any_number, whole_number, wrong
from sightline.model.json import Json, JsonObject
from sightline.model.options import Options
from sightline.model.report import Report, Severity

Kind = Literal["int", "number", "str", "bool", "strings", "object", "list"]

KINDS: Mapping[str, Kind] = {
    "max_tokens": "int",
    "temperature": "number",
    "top_p": "number",
    "top_k": "number",
    "stop": "strings",
    "seed": "int",
    "presence_penalty": "number",
    "frequency_penalty": "number",
    "logit_bias": "object",
    "logprobs": "bool",
    "top_logprobs": "int",
    "n": "int",
    "verbosity": "str",
    "cache_key": "str",
    "cache_retention": "str",
    "store": "bool",
    "include": "strings",
    "previous_response_id": "str",
    "metadata": "object",
    "user": "str",
    "safety_identifier": "str",
    "service_tier": "str",
    "safety_settings": "list",
    "stream": "bool",
    "include_usage": "bool",
}
"""The options that are plain values; `format` and `reasoning` have shapes and are read by each dialect itself."""

IDENTITY = frozenset(
    {"user", "safety_identifier", "metadata", "store", "include", "cache_key", "stream", "include_usage"}
)
"""Bookkeeping between a client and its provider: losing it changes no answer."""

_EXPECTED: Mapping[Kind, tuple[str, tuple[type, ...]]] = {
    "int": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "str": ("a string", (str,)),
    "bool": ("a boolean", (bool,)),
    "object": ("an object", (dict,)),
    "list": ("a list", (list,)),
}

Path = tuple[str, ...]
Table = Mapping[str, tuple[Path, ...]]
"""Canonical option -> the paths at which the dialect may have it; the first is the one we write."""


def read_options(document: JsonObject, table: Table) -> tuple[dict[str, object], dict[str, str]]:
    """The table's options that the document sets, and the pointer of each."""
    found: dict[str, object] = {}
    places: dict[str, str] = {}
    for name, paths in table.items():
        for path in paths:
            if path[0] not in document:  # as most of them
                continue
            value = _value_at(document, path)
            if value is not None and name not in found:
                at = "/" + "/".join(path)
                found[name] = _check_kind(value, KINDS[name], at)
                places[name] = at
    return found, places


def write_options(
    options: Options,
    table: Table,
    document: JsonObject,
    report: Report,
    *,
    dialect: str,
    same: bool,
    skip: frozenset[str],
) -> None:
    """Put each option in its place in the document; report the ones that have none. `skip` are handled elsewhere."""
    for name in KINDS:
        value = getattr(options, name)
        if value is None or name in skip:
            continue
        paths = table.get(name)
        if paths is None:
            lose_option(options, name, report, dialect)
            continue
        path = tuple(options.places[name][1:].split("/")) if same and name in options.places else paths[0]
        set_path(document, path, list(value) if isinstance(value, tuple) else value)


def lose_option(options: Options, name: str, report: Report, dialect: str) -> None:
    """Report an option that the dialect cannot say."""
    if name == "previous_response_id":
        why = "the conversation so far is with the provider alone"
        report.lose(options.places.get(name, f"/{name}"), name, why, "content")
        return
    severity: Severity = "identity" if name in IDENTITY else "option"
    report.lose(options.places.get(name, f"/{name}"), name, f"{dialect} has no such option", severity)


def top_level_keys(table: Table) -> frozenset[str]:
    """The top-level keys that the table reads wholly."""
    return frozenset(path[0] for paths in table.values() for path in paths if len(path) == 1)


def set_path(document: JsonObject, path: Path, value: Json) -> None:
    """Set a value below the root, making the objects on the way."""
    *parents, last = path
    for key in parents:
        step = document.setdefault(key, {})
        if not isinstance(step, dict):  # a path never runs through a scalar that we wrote
            raise wrong(step, "/" + "/".join(path), "an object")
        document = step
    document[last] = value


def _value_at(document: JsonObject, path: Path) -> Json:
    value: Json = document
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def _check_kind(value: Json, kind: Kind, at: str) -> object:
    if kind == "strings":
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise wrong(value, at, "a string or a list of strings")
    expected, types = _EXPECTED[kind]
    if type(value) in types:
        return value
    number = whole_number(value) if kind == "int" else any_number(value) if kind == "number" else None
    if number is None:
        raise wrong(value, at, expected)
    return number


def options_of(found: Mapping[str, object], places: dict[str, str]) -> Options:
    """The options value of what was read; `read_options` has checked each type."""
    return msgspec.structs.replace(Options(), **found, places=places)
