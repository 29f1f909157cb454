"""The chat's facts and preferences as lines of its logs."""

import json

import msgspec

from sightline.chat.core.facts import ChatFact, ChatImported, PairAnswered, PairCancelled, PairFailed
from sightline.chat.service.preferences import Preferences
from sightline.errors import Code, Fault
from sightline.exchange.redaction import Redaction
from sightline.store.logbook import Line
from sightline.tokens.tokenizer import join_surrogates

LOG = "chat"
PREFERENCES = "chat-preferences"

_DECODER: msgspec.json.Decoder[ChatFact] = msgspec.json.Decoder(ChatFact)
_PREFERENCES = msgspec.json.Decoder(Preferences)
_ENCODER = msgspec.json.Encoder()
_HEARD = (PairAnswered, PairFailed, PairCancelled, ChatImported)
"""What is not a person's own words, so that nobody can be asked to write them otherwise."""


def fact_line(fact: ChatFact, redaction: Redaction) -> tuple[bytes, ChatFact]:
    """A fact as the log may have it, without the configured keys, and what it then says."""
    data, fact = _in_whole_characters(fact) if isinstance(fact, _HEARD) else (_encode(fact), fact)
    masked = _redact(data, redaction)
    return (data, fact) if masked is None else (masked, _DECODER.decode(masked))


def preferences_line(preferences: Preferences, redaction: Redaction) -> tuple[bytes, Preferences]:
    """The same for preferences."""
    data = _encode(preferences)
    masked = _redact(data, redaction)
    return (data, preferences) if masked is None else (masked, _PREFERENCES.decode(masked))


def _in_whole_characters(fact: ChatFact) -> tuple[bytes, ChatFact]:
    """A model may cut a character in two; that is no reason to lose what it said."""
    try:
        return _ENCODER.encode(fact), fact
    except UnicodeEncodeError:
        data = join_surrogates(json.dumps(msgspec.to_builtins(fact), ensure_ascii=False)).encode()
        return data, _DECODER.decode(data)


def _redact(data: bytes, redaction: Redaction) -> bytes | None:
    """What may be kept of these bytes; None where that is all of them."""
    masking = redaction.masking()
    shown = masking.feed(data) + masking.close()
    return shown if masking.has_found else None


def _encode(value: ChatFact | Preferences) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        hint = "Take it out: it is half of a character, as a cut text has it."
        raise Fault(Code.INVALID_REQUEST, "the text is not Unicode", hint=hint, status=422) from None


def fact_in(line: Line) -> ChatFact:
    """The fact that a line holds."""
    try:
        return _DECODER.decode(line.data)
    except msgspec.DecodeError as error:
        raise _unreadable(LOG, line.n, error) from None


def preferences_in(line: Line) -> Preferences:
    """The preferences that a line holds."""
    try:
        return _PREFERENCES.decode(line.data)
    except msgspec.DecodeError as error:
        raise _unreadable(PREFERENCES, line.n, error) from None


def _unreadable(log: str, number: int, error: msgspec.DecodeError) -> Fault:
    return Fault(
        Code.CONFIG,
        f"line {number} of the log {log!r} cannot be understood: {error}",
        hint="A newer version of Sightline has written it; use that version, or another data folder.",
    )
