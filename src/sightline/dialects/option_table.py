"""Options by table: where a dialect has each canonical option. An option without a row is a loss. Service tiers and
end-user ids have values that each API spells in its own way."""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from sightline.dialects.fields import any_number, whole_number, wrong
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report, Severity
from sightline.model.request import Options, Reasoning

USER_ID = "user_id"
"""The rule for ids that must not identify a person."""

OPENAI_LIMITS = {"user": 64, "safety_identifier": 128}
_ANTHROPIC_LIMIT = 256
_E_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_PHONE = re.compile(r"\+?[\d\s().-]{7,}")


def fit_stops(options: Options, most: int, report: Report, dialect: str) -> Options:
    """The options with no more stop sequences than the API takes."""
    for text in (options.stop or ())[most:]:
        report.lose(options.place("stop"), f"stop sequence {text!r}", f"{dialect} takes {most}", "option")
    return options if options.stop is None else msgspec.structs.replace(options, stop=options.stop[:most])


def fit_openai_ids(options: Options, report: Report, dialect: str) -> Options:
    """The options with ids that OpenAI's APIs take."""
    for name, limit in OPENAI_LIMITS.items():
        value: str | None = getattr(options, name)
        if value is not None and len(value) > limit:
            why = f"{dialect} takes {limit} characters at most: a hash is sent"
            options = _hash(options, name, value, why, report)
    return options


def fit_anthropic_id(options: Options, report: Report, dialect: str) -> Options:
    """The options with a single id, `user`, as Anthropic's API has only one, in a form that it does not refuse."""
    if options.safety_identifier is not None:
        place = options.place("safety_identifier")
        if options.user is None:
            places = {**options.places, "user": place}
            options = msgspec.structs.replace(options, user=options.safety_identifier, places=places)
        elif options.user != options.safety_identifier:
            why = f"{dialect} has one id for a user, and user is sent"
            report.lose(place, "safety_identifier", why, "identity")
        options = msgspec.structs.replace(options, safety_identifier=None)
    value = options.user
    if value is None:
        return options
    if looks_like_a_person(value):
        why = f"{dialect} refuses e-mail addresses and phone numbers: a hash is sent"
        return _hash(options, "user", value, why, report)
    if len(value) > _ANTHROPIC_LIMIT:
        why = f"{dialect} takes {_ANTHROPIC_LIMIT} characters at most: a hash is sent"
        return _hash(options, "user", value, why, report)
    return options


def looks_like_a_person(user_id: str) -> bool:
    """Whether an id looks like an e-mail address or a phone number, as far as Anthropic checks."""
    return bool(_E_MAIL.search(user_id) or _PHONE.fullmatch(user_id))


def hash_id(user_id: str) -> str:
    """The hash that is sent in place of an id: the same each time, and not a name."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()


def _hash(options: Options, name: str, value: str, why: str, report: Report) -> Options:
    report.lose(options.place(name), "the id of the user as it was written", why, "identity")
    return msgspec.structs.replace(options, **{name: hash_id(value)})


Tiers = Mapping[str, str | None]
"""A tier under any API's name -> its name in one API; None if that API does so by default."""

_OPENAI: Tiers = {
    **{word: word for word in ("auto", "default", "flex", "priority", "scale", "fast")},
    "standard": "default",
    "standard_only": "default",
    "unspecified": None,
}

OF_CHAT: Tiers = _OPENAI
OF_RESPONSES: Tiers = {**_OPENAI, "ultrafast": "ultrafast"}
OF_ANTHROPIC: Tiers = {
    "auto": "auto",
    "standard_only": "standard_only",
    "default": "standard_only",
    "standard": "standard_only",
    "unspecified": None,
}
# OpenAI serves `fast` as priority and reports it so in its replies.
OF_GEMINI: Tiers = {
    "auto": None,
    "unspecified": None,
    "standard": "standard",
    "standard_only": "standard",
    "default": "standard",
    "flex": "flex",
    "priority": "priority",
    "fast": "priority",
}


def fit_tier(options: Options, tiers: Tiers, report: Report, dialect: str) -> Options:
    """Another API's options with the tier under this API's name; a tier without one is removed and reported."""
    if options.service_tier is None:
        return options
    tier = options.service_tier.lower()  # Gemini takes its words in upper or lower case
    if tiers.get(tier) is None:
        if tier in tiers:
            lose_default(options, "service_tier", report, dialect)
        else:
            report.lose(
                options.place("service_tier"), f"service tier {tier!r}", f"{dialect} has no such tier", "option"
            )
    return msgspec.structs.replace(options, service_tier=tiers.get(tier))


Kind = Literal["int", "number", "str", "bool", "strings", "object", "list"]

_KIND_OF_TYPE: Mapping[object, Kind] = {
    int | None: "int",
    int | float | None: "number",
    str | None: "str",
    bool | None: "bool",
    tuple[str, ...] | None: "strings",
    dict[str, Json] | None: "object",
    list[Json] | None: "list",
}
KINDS: Mapping[str, Kind] = {
    field.name: _KIND_OF_TYPE[field.type] for field in msgspec.structs.fields(Options) if field.type in _KIND_OF_TYPE
}
"""The options that are plain values; `format` and `reasoning` are structured and are read by each dialect itself."""

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
"""Canonical option -> the paths at which the dialect may have it; the first is the one that is written."""


def same_names(*names: str) -> Table:
    """The rows of options that a dialect has at the top level under their canonical names."""
    return {name: ((name,),) for name in names}


def read_options(document: JsonObject, table: Table) -> tuple[dict[str, object], dict[str, str]]:
    """The options of the table that the document sets, and the pointer of each."""
    found: dict[str, object] = {}
    places: dict[str, str] = {}
    for name, paths in table.items():
        for path in paths:
            if path[0] not in document:  # true of most of them
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
    skip: frozenset[str] = frozenset(),
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Put each option in its place in the document, and report those that have none. `skip` are handled elsewhere.

    `defaults` are options of other dialects with the values that ask for what this API does anyway: losing such an
    option changes no answer.
    """
    for name in KINDS:
        value = getattr(options, name)
        if value is None or name in skip:
            continue
        if name in defaults and value == defaults[name]:
            lose_default(options, name, report, dialect)
            continue
        paths = table.get(name)
        if paths is None:
            lose_option(options, name, report, dialect)
            continue
        path = tuple(options.places[name][1:].split("/")) if same and name in options.places else paths[0]
        set_path(document, path, list(value) if isinstance(value, tuple) else value)


def lose_default(options: Options, name: str, report: Report, dialect: str) -> None:
    """Report the loss of an option that asks for what the API does by default."""
    report.lose(options.place(name), name, f"{dialect} does so by default", "identity")


def lose_option(options: Options, name: str, report: Report, dialect: str) -> None:
    """Report the loss of an option that the dialect does not have."""
    if name == "previous_response_id":
        report.lose(options.place(name), name, "the conversation so far is with the provider alone", "content")
        return
    severity: Severity = "identity" if name in IDENTITY else "option"
    report.lose(options.place(name), name, f"{dialect} has no such option", severity)


def top_level_keys(table: Table) -> frozenset[str]:
    """The top-level keys whose whole value the table reads."""
    return frozenset(path[0] for paths in table.values() for path in paths if len(path) == 1)


def set_path(document: JsonObject, path: Path, value: Json) -> None:
    """Set a value below the root, creating the objects on the way."""
    *parents, last = path
    for key in parents:
        step = document.setdefault(key, {})
        if not isinstance(step, dict):  # a path never leads through a scalar that we wrote
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


def reasoning_of(at: str, extras: JsonObject, **found: tuple[str | int | None, str]) -> Reasoning:
    """The reasoning settings that were read, each given with its place; those that are None are not set."""
    known = {name: (value, place) for name, (value, place) in found.items() if value is not None}
    values = {name: value for name, (value, _) in known.items()}
    places = {name: place for name, (_, place) in known.items()}
    return msgspec.structs.replace(Reasoning(at=at, extras=extras), **values, places=places)


def options_of(found: Mapping[str, object], places: dict[str, str]) -> Options:
    """The options that were read, as an `Options` value; `read_options` has checked each type."""
    return msgspec.structs.replace(Options(), **found, places=places)
