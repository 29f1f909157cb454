"""The messages of one turn of a conversation that is held live."""

from collections.abc import Sequence

from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.evals.core.suite import Case, CaseMessage
from sightline.model.message import Message


def turn_messages(case: Case, turn: int, replies: Sequence[Sequence[Message]]) -> tuple[CaseMessage | Message, ...]:
    """What is delivered for a turn, counted from 0: what stands before the turns, each turn that was held with what the
    model really said to it, and what is said now. `replies` are those of the turns before, tool rounds included."""
    said: list[CaseMessage | Message] = [*case.messages]
    for index in range(turn):
        said += case.turns[index].messages
        said += replies[index]
    return (*said, *case.turns[turn].messages)


def last_exchanges(messages: Sequence[Message], size: int | None) -> tuple[Message, ...]:
    """All system messages, and of the others the last `size` exchanges: twice that many messages, and never one more.

    The last of them is what is said now, so that the window usually opens on an answer of the model, as in AgentV. A
    result whose call is outside of it is left out. Where nothing but results is in it, it opens at their call.
    """
    if size is None:
        return tuple(messages)
    spoken = [index for index, message in enumerate(messages) if message.role not in SYSTEM_ROLES]
    opens = [index for index in spoken if messages[index].role != "tool"]
    inside = spoken[-2 * size :]
    first = next((index for index in opens if inside and index >= inside[0]), opens[-1] if opens else 0)
    return tuple(message for index, message in enumerate(messages) if index >= first or message.role in SYSTEM_ROLES)
