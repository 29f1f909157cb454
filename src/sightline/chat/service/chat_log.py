"""What the chat keeps: how its facts and preferences are written, and what preferences mean for the settings."""

import json
from collections.abc import Callable
from typing import TypeVar

import msgspec

from sightline.chat.core.facts import ChatFact, ChatImported, PairAnswered, PairCancelled, PairFailed
from sightline.chat.core.sizing import ChatSettings
from sightline.errors import Code, Fault
from sightline.journal.journal import FactFormat
from sightline.model.json import JsonObject
from sightline.store.store import Line
from sightline.tokens.text_count import join_surrogates

LOG = "chat"
PREFERENCES = "chat-preferences"
MOST_FILTERS = 1000

T = TypeVar("T")


class SavedFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter and its name, which no other saved filter has."""

    name: str
    filter: str


class Preferences(msgspec.Struct, frozen=True):
    """What a person has set on the page. `settings` are the changed ones by their names in JSON."""

    settings: JsonObject = {}
    saved_filters: tuple[SavedFilter, ...] = ()


def apply_preferences(configured: ChatSettings, preferences: Preferences) -> ChatSettings:
    """The settings with the preferences over the configuration. A value that does not fit is a fault that names it."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(ChatSettings)}
    plain = {names[name]: value for name, value in msgspec.structs.asdict(configured).items()}
    try:
        return msgspec.convert({**plain, **preferences.settings}, ChatSettings, strict=True)
    except msgspec.ValidationError as error:
        hint = f"The settings are {', '.join(names.values())}."
        raise Fault(Code.INVALID_REQUEST, f"the settings cannot be so: {error}", hint=hint, status=422) from None


def check_preferences(preferences: Preferences) -> Preferences:
    """The preferences; a fault unless each saved filter has a name of its own."""
    names = [each.name for each in preferences.saved_filters]
    if len(set(names)) != len(names) or not all(name.strip() for name in names) or len(names) > MOST_FILTERS:
        hint = f"Give each a name of its own; {MOST_FILTERS} are the most."
        raise Fault(Code.INVALID_REQUEST, "the saved filters need names of their own", hint=hint, status=422)
    return preferences


_ENCODER = msgspec.json.Encoder()
_FACTS: msgspec.json.Decoder[ChatFact] = msgspec.json.Decoder(ChatFact)
_PREFERENCES = msgspec.json.Decoder(Preferences)
_GENERATED = (PairAnswered, PairFailed, PairCancelled, ChatImported)
"""Facts with text that no person typed just now, so that no one can be asked to correct it."""


def _encode_fact(fact: ChatFact) -> tuple[bytes, ChatFact]:
    if not isinstance(fact, _GENERATED):
        return _encode_typed(fact)
    try:
        return _ENCODER.encode(fact), fact
    except UnicodeEncodeError:
        # A model may cut a character in two, which leaves half of a surrogate pair.
        data = join_surrogates(json.dumps(msgspec.to_builtins(fact), ensure_ascii=False)).encode()
        return data, _FACTS.decode(data)


def _encode_typed(value: T) -> tuple[bytes, T]:
    try:
        return _ENCODER.encode(value), value
    except UnicodeEncodeError:
        hint = "Take it out: it is half of a character, as a cut text has it."
        raise Fault(Code.INVALID_REQUEST, "the text is not Unicode", hint=hint, status=422) from None


def _decoder(log: str, decode: Callable[[bytes], T]) -> Callable[[Line], T]:
    def decode_line(line: Line) -> T:
        try:
            return decode(line.data)
        except msgspec.DecodeError as error:
            message = f"line {line.n} of the log {log!r} cannot be understood: {error}"
            hint = "A newer version of Sightline has written it; use that version, or another data folder."
            raise Fault(Code.CONFIG, message, hint=hint) from None

    return decode_line


FACT_FORMAT: FactFormat[ChatFact] = FactFormat(_encode_fact, _decoder(LOG, _FACTS.decode))
PREFERENCES_FORMAT: FactFormat[Preferences] = FactFormat(_encode_typed, _decoder(PREFERENCES, _PREFERENCES.decode))
