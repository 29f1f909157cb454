"""Recorded exchanges as one conversation, and the turns that it falls into."""

from collections.abc import Sequence

import msgspec

from sightline.model.comparison import of_message
from sightline.model.message import Message
from sightline.model.parts import ToolResult
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.wire import jsontext


class RecordedExchange(msgspec.Struct, frozen=True):
    """A request, and its reply if there was one."""

    request: Request
    reply: Reply | None = None

    @property
    def said(self) -> tuple[Message, ...]:
        """What was answered, as a message of the conversation; a reply that broke off is none."""
        if self.reply is None or self.reply.fault is not None or not self.reply.choice.parts:
            return ()
        return (Message("assistant", self.reply.choice.parts),)


class RecordedTurn(msgspec.Struct, frozen=True):
    """What the user says, and all that follows until the user speaks again."""

    asked: tuple[Message, ...]
    answered: tuple[Message, ...]


class Conversation(msgspec.Struct, frozen=True):
    """The messages that were sent, what was answered last, and how many earlier messages are no longer among them.

    `is_continued`: the provider holds a beginning that is not here.
    """

    messages: tuple[Message, ...]
    said: tuple[Message, ...]
    forgotten: int = 0
    is_continued: bool = False


def join_exchanges(exchanges: Sequence[RecordedExchange]) -> Conversation:
    """The conversation of exchanges in their order.

    A client sends it whole each time, so the last request has it all, unless the provider keeps it: then what came
    before is put in front.
    """
    messages: tuple[Message, ...] = ()
    said: tuple[Message, ...] = ()
    forgotten = 0
    is_continued = False
    for place, exchange in enumerate(exchanges):
        own = exchange.request.messages
        if exchange.request.options.previous_response_id is not None:
            is_continued = is_continued or place == 0
            messages = (*messages, *said, *own)
        else:
            sent = {_key(message) for message in own}
            forgotten += sum(_key(message) not in sent for message in messages if message.role != "system")
            messages, is_continued = own, False
        said = exchange.said
    return Conversation(messages, said, forgotten, is_continued)


def turns_of(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[RecordedTurn, ...]]:
    """What stands before the user speaks for the first time, and the turns."""
    starts = [
        place
        for place, message in enumerate(messages)
        if is_users(message) and not (place and is_users(messages[place - 1]))
    ]
    turns = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(messages)
        asked = next((place for place in range(start, end) if not is_users(messages[place])), end)
        turns.append(RecordedTurn(tuple(messages[start:asked]), tuple(messages[asked:end])))
    return tuple(messages[: starts[0]] if starts else messages), tuple(turns)


def is_users(message: Message) -> bool:
    """Whether a person speaks: results of tools travel under the user's name on some wires."""
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def _key(message: Message) -> bytes:
    return jsontext.encode(msgspec.to_builtins(of_message(message)))
