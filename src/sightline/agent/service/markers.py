"""Requests of a run that begin behind what the provider keeps of the conversation.

A Responses provider that was told to store a reply takes its id as `previous_response_id`, and needs only what came
after it. That holds as long as the conversation here is the one that the provider has: whatever was amended, edited or
left out here has to be sent whole.
"""

import msgspec

from sightline.agent.core.rounds import Round
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request

_WORDS = ("previous response", "previous_response")


def behind_marker(request: Request, last: Round | None) -> Request | None:
    """The request without what the provider keeps under the marker of the last reply; None where all must be sent."""
    if last is None or last.reply.marker is None or last.reply.fault is not None or request.options.store is not True:
        return None
    if last.amendments or any(call.is_edited or call.sent_id is not None for call in last.calls):
        return None
    turns = [n for n, message in enumerate(request.messages) if message.role == "assistant"]
    if not turns or turns[-1] + 1 == len(request.messages):
        return None
    messages = (*_instructions(request.messages), *request.messages[turns[-1] + 1 :])
    options = msgspec.structs.replace(request.options, previous_response_id=last.reply.marker)
    return msgspec.structs.replace(request, messages=messages, options=options)


def is_forgotten(fault: Fault | None) -> bool:
    """Whether the provider refuses a request because it does not know the marker any more."""
    if fault is None or fault.code not in (Code.INVALID_REQUEST, Code.MODEL_UNKNOWN):
        return False
    said = f"{fault.message} {fault.details}".lower()
    return any(words in said for words in _WORDS)


def _instructions(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What is sent beside the conversation, and is not carried over: the first system message, if it is one text."""
    first = messages[0]
    is_beside = first.role == "system" and len(first.parts) == 1 and isinstance(first.parts[0], Text)
    return (first,) if is_beside else ()
