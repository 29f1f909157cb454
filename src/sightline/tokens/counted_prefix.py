"""Prompts that a provider has counted: of a conversation that goes on, only what is new has to be estimated.

A request is known by a chain of digests, one for each message, so that any longer request of the same conversation
finds it without the words being kept. The chain begins with all that is not a message: provider, model, tools, the form
of the answer.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint
from sightline.model.request import Request

_SIZE = 12
_MOST = 512
_ENCODER = msgspec.json.Encoder()


class CountedPrefixes:
    """What providers counted, by the last digest of the request, the latest at the end."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    @property
    def counts(self) -> dict[str, int]:
        """All of them, to be kept."""
        return dict(self._counts)

    def note(self, chain: list[str], tokens: int) -> None:
        """The provider counted so many tokens for the request with this chain."""
        self._counts.pop(chain[-1], None)
        self._counts[chain[-1]] = tokens
        while len(self._counts) > _MOST:
            del self._counts[next(iter(self._counts))]

    def merge(self, other: "CountedPrefixes") -> None:
        """Take in all that another one has, as if it had come after."""
        for digest, tokens in other._counts.items():
            self.note([digest], tokens)

    def longest(self, chain: list[str]) -> tuple[int, int] | None:
        """How many of the first messages were counted, and the tokens of a request with just these; None where no
        beginning of it was."""
        for count in range(len(chain) - 1, 0, -1):
            if (tokens := self._counts.get(chain[count])) is not None:
                return count, tokens
        return None

    def clear(self) -> None:
        """Forget them."""
        self._counts.clear()


def digest_chain(provider: str, model: str, request: Request) -> list[str]:
    """The digest of everything but the messages, then one more for each message, which stands for all up to it."""
    options = request.options
    around = (provider, model, request.tools, options.format, options.reasoning, options.previous_response_id)
    state = blake2b(_encode(around), digest_size=_SIZE)
    chain = [state.hexdigest()]
    for message in request.messages:
        state.update(_encode(_plain(message)))
        chain.append(state.hexdigest())
    return chain


def _encode(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # half a character, which clients in JavaScript send
        return ascii(value).encode()


def _plain(message: Message) -> Message:
    """The message without marks for the cache: a client moves them with every turn, and they take no tokens."""
    if not any(isinstance(part, CacheBreakpoint) for part in message.parts):
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, CacheBreakpoint))
    return msgspec.structs.replace(message, parts=parts)
