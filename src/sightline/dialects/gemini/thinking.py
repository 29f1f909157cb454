"""One thought that a client sends back in the pieces in which a stream gave it: words first, their seal on no words.

Read as one thought, the words and the seal stay together in every other dialect. The pieces stay beside it, each in its
place, as opaque parts whose content stands elsewhere; our own writer writes them instead of the thought.
"""

from collections.abc import Iterator

import msgspec

from sightline.dialects import signatures as seals
from sightline.dialects.gemini.field_names import NAME
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Opaque, Part, Thinking
from sightline.wire.pointer import resolve


def with_joined_thoughts(messages: list[Message], document: Json) -> list[Message]:
    """The messages with each thought whole, directly before the piece that seals it. Pieces may be contents too."""
    pieces: dict[str, Part] = {}
    wholes: dict[str, Part] = {}
    for run in _runs(messages):
        *words, seal = run
        for piece in run:
            pieces[piece.at] = Opaque(NAME, resolve(document, piece.at), mirrored=True, at=piece.at)
        text = "".join(piece.text for piece in words)
        wholes[seal.at] = msgspec.structs.replace(seal, text=text, at=words[0].at)
    if not wholes:
        return messages
    return [
        msgspec.structs.replace(
            message,
            parts=tuple(
                one
                for part in message.parts
                for one in (wholes.get(part.at), pieces.get(part.at, part))
                if one is not None
            ),
        )
        for message in messages
    ]


def is_followed_by_pieces(parts: tuple[Part, ...], index: int) -> bool:
    """Whether this part is a thought whose pieces stand beside it."""
    following = parts[index + 1] if index + 1 < len(parts) else None
    return isinstance(parts[index], Thinking) and isinstance(following, Opaque) and following.mirrored


def _runs(messages: list[Message]) -> Iterator[list[Thinking]]:
    """The pieces of each thought: words without a seal, then a seal without words."""
    run: list[Thinking] = []
    for message in messages:
        if message.role != "assistant":
            run = []
            continue
        for part in message.parts:
            if not isinstance(part, Thinking) or part.redacted or part.extras or part.id == seals.NEXT:
                run = []
            elif part.signed_by is None:
                run.append(part)
            else:
                if run and not part.text:
                    yield [*run, part]
                run = []
