"""What a person would look for in an exchange: the words that are new in its request, and those of the reply."""

import logging
from collections.abc import Iterable

import msgspec

from sightline.dialects.registry import dialect, find_dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.model.fold import fold
from sightline.model.message import Message
from sightline.model.parts import Document, Part, PlainText, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.store.threads import SYSTEM_ROLES, fingerprints, is_errand, without_reminders
from sightline.wire.jsontext import decode, encode

MOST_LETTERS = 200_000
"""How much of one request or reply can be searched."""
MOST_IN_TITLE = 120
_LOG = logging.getLogger(__name__)


class Digest(msgspec.Struct, frozen=True):
    """`asked` are the words since the last turn of the model, `system` the instructions, piece by piece, `thread` the
    fingerprints of the conversation's beginnings, `continues` the id of the reply that the request names as its last.
    `previous`, which takes a look at other exchanges, is the one that it continues."""

    title: str = ""
    asked: str = ""
    system: tuple[str, ...] = ()
    thread: tuple[bytes, ...] = ()
    is_side: bool = False
    previous: str = ""
    continues: str = ""


def digest_of(name: str, body: bytes) -> Digest:
    """What the request with this body tells; one that is not of its dialect is text all the same."""
    if find_dialect(name) is None:
        return _unread(body)
    try:
        return _read(dialect(name).read_request(decode(body)))
    except Fault:
        return _unread(body)
    except Exception:  # noqa: BLE001 - a mistake of ours in reading one body must not end the recording of all others
        _LOG.exception("a request could not be read for search; it is on record all the same")
        return _unread(body)


def _read(request: Request) -> Digest:
    asked = _words(part for message in _new(request.messages) for part in message.parts)
    own = [message for message in request.messages if message.role == "user"]
    return Digest(
        title=_title(own[-1:]) or _title(own) or _shorten(asked),
        asked=asked,
        system=tuple(
            part.text
            for message in request.messages
            if message.role in SYSTEM_ROLES
            for part in message.parts
            if isinstance(part, Text) and part.text
        ),
        thread=tuple(fingerprints(request)),
        is_side=is_errand(request),
        continues=request.options.previous_response_id or "",
    )


def reply_words(name: str, data: bytes) -> str:
    """The words of a raw reply in a dialect, content codings undone. What cannot be read is on record all the same."""
    if find_dialect(name) is None:
        return _clip(data.decode("utf-8", "replace"))
    hearing = ReplyDecoder(dialect(name))
    try:
        reply = fold([*hearing.feed(data), *hearing.close()])
    except Exception:  # noqa: BLE001 - as above
        _LOG.exception("a reply could not be read for search; it is on record all the same")
        return _clip(data.decode("utf-8", "replace"))
    words = words_of(reply)
    return words if reply.fault is None else _clip(f"{words}\n{reply.fault.message}")


def words_of(reply: Reply) -> str:
    """The words of a reply that was read."""
    return _words(part for choice in reply.choices for part in choice.parts)


def _new(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What stands behind the model's last turn; all of it where the model has not spoken."""
    last = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return tuple(message for message in messages[last + 1 :] if message.role not in SYSTEM_ROLES)


def _title(messages: list[Message]) -> str:
    texts = (without_reminders(part.text) for each in messages for part in each.parts if isinstance(part, Text))
    return _shorten(next((text for text in texts if text), ""))


def _shorten(text: str) -> str:
    line = " ".join(text[: 4 * MOST_IN_TITLE].split())
    return line if len(line) <= MOST_IN_TITLE else line[: MOST_IN_TITLE - 1] + "…"


def _words(parts: Iterable[Part]) -> str:
    return _clip("\n".join(word for part in parts for word in _words_of(part) if word))


def _words_of(part: Part) -> list[str]:
    match part:
        case Text(text=text) | Refusal(text=text) | Thinking(text=text):
            return [text]
        case ToolCall(name=name, arguments=arguments):
            return [name, arguments]
        case ToolResult(parts=parts, structured=structured):
            told = [word for each in parts for word in _words_of(each)]
            return told if structured is None else [*told, encode(structured).decode()]
        case Document(source=PlainText(text=text)):
            return [text]
        case _:
            return []


def _unread(body: bytes) -> Digest:
    text = _clip(body.decode("utf-8", "replace"))
    return Digest(title=_shorten(text), asked=text)


def _clip(text: str) -> str:
    """As much as is searched, and nothing that UTF-8 cannot carry."""
    text = text[:MOST_LETTERS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
