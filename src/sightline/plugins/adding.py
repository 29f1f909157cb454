"""Adds the parts of plug-ins to the registries of other packages: dialects, filter fields and graders, each guarded. A
part with the name of another is refused."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from sightline.dialects.dialect import Dialect
from sightline.dialects.registry import DEFAULT, dialect, register
from sightline.errors import Code, Fault
from sightline.exchange.recording.formats import FORMS
from sightline.exchange.recording.sharing import KINDS
from sightline.filters.fields import FIELDS, FilterField, FilterScope, Kind, add_field
from sightline.filters.predicate import FilterSubject, Value, canonical
from sightline.model.json import JsonObject
from sightline.model.request import Request
from sightline.plugins.guard import FILE_SECONDS, LoadedPlugin
from sightline.plugins.plugin import ExchangeField, GradeAnswer, Plugin
from sightline.plugins.signing import BUILT_IN


def add_parts(owner: LoadedPlugin, plugin: Plugin, owners: dict[str, str]) -> None:
    """Add the parts that other packages find by name, and check the names of all other parts that users refer to by
    name. A part that cannot be added is refused, which is a failure of the plug-in. `owners` maps each part that exists
    already (`field team`) to its plug-in; parts that are added here are entered in it."""
    adding: dict[str, Callable[[], None]] = {
        **{f"dialect {each.name}": partial(register, _guard_dialect(each, owner)) for each in plugin.dialects},
        **{f"field {name}": partial(_add_field, name, field, owner) for name, field in plugin.fields.items()},
        **{f"grader {name}": partial(_add_grader, name, grade, owner) for name, grade in plugin.graders.items()},
        **{
            f"{kind} {name}": partial(check_name, kind, name)
            for kind in _BUILT_IN_NAMES
            for name in getattr(plugin, f"{kind}s")
        },
    }
    for what, add in adding.items():
        try:
            if what in owners:
                hint = "A name is used once: rename one of them, or take one out of [plugins]."
                raise Fault(Code.CONFIG, f"the plug-in {owners[what]!r} has a {what} already", hint=hint)
            add()
        except Fault as fault:
            owner.fail(what, fault)
            owner.refused.add(what)
        else:
            owners[what] = owner.named
    STAND_INS.difference_update(each.name for each in plugin.dialects)


_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
_BUILT_IN_NAMES: Final[Mapping[str, Collection[str]]] = {
    "signer": BUILT_IN,
    "exporter": FORMS,
    "importer": FORMS,
    "redactor": KINDS,
    "panel": (),
}
"""The built-in names, for the kinds of parts that have no registry."""


def check_name(kind: str, name: str) -> None:
    """Raise a Fault if a part of this kind cannot have this name, because it is built in or malformed."""
    if name in _BUILT_IN_NAMES[kind]:
        raise Fault(Code.CONFIG, f"the {kind} {name!r} is built in", hint="Give yours another name.")
    if not _NAME.fullmatch(name):
        raise Fault(
            Code.CONFIG, f"{name!r} is not a valid name for a {kind}", hint="Use lowercase letters, digits and dashes."
        )


MISSING: Final = "the dialect of a plug-in"
"""The `sign` of a provider whose dialect is missing: no request is sent to it, whatever its path."""
STAND_INS: Final[set[str]] = set()
"""The dialects that a provider speaks but no plug-in has, because one has failed."""


_GUARDED: Final[Mapping[str, type | tuple[type, ...]]] = {
    "read_request": Request,
    "write_request": (dict, list),
    "read_reply": list,
    "write_reply": dict,
    "read_error": Fault,
    "write_error": tuple,
    "problems": list,
    "vendor_problems": list,
    "owns_frame": bool,
}
"""The guarded functions of a dialect, and what they have to return."""


_NO_SHORT_CUTS: Final[Mapping[str, Any]] = dict.fromkeys(("read_plain", "read_ending", "plain_stream", "plain_texts"))


def _guard_dialect(added: Dialect, owner: LoadedPlugin) -> Dialect:
    """The dialect, with its unexpected errors as faults of the request that caused them. Its shortcuts, which only save
    time, are left out: a dialect derived from a built-in one would have that one's shortcuts."""
    what = f"dialect {added.name}"
    calls: dict[str, Any] = {
        name: owner.guard(what, getattr(added, name), returns) for name, returns in _GUARDED.items()
    }
    for name in ("stream_reader", "stream_writer"):
        make = getattr(added, name)

        def make_guarded(*args: Any, _make: Callable[..., object] = make) -> _GuardedStream:
            return _GuardedStream(owner.guard(what, _make)(*args), owner, what)

        calls[name] = make_guarded
    return replace(added, **_NO_SHORT_CUTS, **calls)


@dataclass(frozen=True, slots=True)
class _GuardedStream:
    """A reader or a writer of a stream whose calls are guarded."""

    _stream: object
    _owner: LoadedPlugin
    _what: str

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        return self._owner.guard(self._what, found, (list, bytes)) if callable(found) else found


def add_stand_in(name: str, fault: Fault) -> None:
    """Register a dialect that refuses everything, in place of one that could not be loaded."""

    def refuse(*_args: object) -> Any:
        raise Fault(fault.code, fault.message, hint=fault.hint)

    chat = dialect(DEFAULT)
    clients = replace(chat.clients, headers=frozenset(), key_parameter="", versions=None, raw_paths=None)
    calls: dict[str, Any] = dict.fromkeys((*_GUARDED, "stream_reader", "stream_writer"), refuse)
    STAND_INS.add(name)
    register(replace(chat, name=name, clients=clients, **_NO_SHORT_CUTS, **calls))


FIELD_VALUES: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str, tuple),
    "number": (int, float),
    "yes or no": (bool,),
}
"""The types of a field's value, by its kind."""


def _add_field(name: str, field: ExchangeField, owner: LoadedPlugin) -> None:
    """Add a filter field. It can be used only in lists: code that can fail must not decide which request is held or
    sent."""
    if field.kind not in FIELD_VALUES:
        known = ", ".join(FIELD_VALUES)
        raise Fault(Code.USAGE, f"there is no kind {field.kind!r} of field", hint=f"Kinds are {known}.")

    def read_value(exchange: FilterSubject) -> Value:
        return field.read(PluginExchange(exchange))

    read = owner.guard(f"field {name}", read_value, (*FIELD_VALUES[field.kind], type(None)))
    scopes = frozenset({FilterScope.TRAFFIC})
    add_field(FilterField(name, Kind(field.kind), field.meaning, scopes=scopes, read=read))


_DERIVED: Final = ("text", "age", "date", "tokens", "ok", "error", "latest")
"""Filter fields that have no value of their own, but are derived from others."""
_READABLE_FIELDS: Final[Mapping[str, str]] = {
    name: field.name
    for field in FIELDS
    if FilterScope.TRAFFIC in field.scopes and field.name not in _DERIVED
    for name in field.names
} | {"at": "at"}
"""The values of an exchange that the field of a plug-in can read, by all of their names."""


@dataclass(frozen=True, slots=True)
class PluginExchange:
    """An exchange as the field of a plug-in sees it. Unlike a filter, its author may ask for values that do not
    exist."""

    exchange: FilterSubject

    def value(self, name: str) -> Value:
        """The value of a built-in field, by its name, alias or letter. Raises a LookupError for any other name."""
        if name not in _READABLE_FIELDS:
            known = ", ".join(sorted(set(_READABLE_FIELDS.values())))
            raise LookupError(f"exchange.value({name!r}): an exchange has no such value; it has {known}")
        return self.exchange.value(_READABLE_FIELDS[name])

    def says(self, pattern: str) -> bool:
        """Whether the text of the exchange contains the pattern, ignoring case. Only `*` is special, as in `text` of a
        filter."""
        return self.exchange.says(canonical(pattern, "*"))


def _add_grader(name: str, grade: GradeAnswer, owner: LoadedPlugin) -> None:
    from sightline.agent.tools.tools import call_function
    from sightline.evals.core.graders.grade import add_grader

    what = f"grader {name}"
    guarded = owner.guard(what, grade, (bool, int, float, dict), seconds=FILE_SECONDS)

    async def call(payload: JsonObject, seconds: float) -> Any:
        return await owner.wait(what, call_function(partial(guarded, payload)), seconds=seconds)

    add_grader(name, call)
