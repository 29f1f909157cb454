"""What a target did with a case, as graders see it."""

import msgspec

from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.usage import Usage


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One call of a tool: `arguments` are what the model's string holds, or the string where it holds nothing."""

    name: str
    arguments: Json = None
    result: str = ""
    is_error: bool = False
    id: str = ""
    seconds: float | None = None


class CaseObservation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One answer, or one conversation. `asked` is the conversation as it was sent, `messages` what the target said
    (with tool rounds), `text` its last words. What is not known is None, which is not 0.

    `is_traced` is False of a program that tells its last words only: which tools and models it called is not known.
    `exchanges` are where it is on record; `error` is why there is no answer, with its fault code.
    """

    asked: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    finish: str = ""
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    requests: int = 1
    is_traced: bool = True
    model: str = ""
    exchanges: tuple[str, ...] = ()
    run: str = ""
    request_sha256: str = ""
    question: str = ""
    error: str = ""
    error_code: str = ""
    extras: JsonObject = {}
