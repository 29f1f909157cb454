"""A question and its answer, the unit of a chat's history; and a file as a part of a question: text under its name,
images, PDFs and audio as themselves."""

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from sightline.errors import CancelReason, Code, Fault
from sightline.model.parts import Audio, Citation, Document, Image, Inline, Part, Text, ToolCall
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message
from sightline.wire.media_type import BINARY, encoding_of, is_text, sniff

LifecycleState: TypeAlias = Literal["idle", "sending", "complete", "error"]
Flag: TypeAlias = Literal["blue", "grey"]
Hand: TypeAlias = Literal["", "in", "out"]
Star: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=3)]


_NO_FAILURE = frozenset({"cancelled", "interrupted", "filter_changed"})


class Trouble(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is no answer. `label` is its class, shown in brackets; `code` is the precise cause, `hint` is what to
    do next, `reason` is why it was cancelled. `status` is the provider's HTTP status, if it answered."""

    code: str
    message: str
    label: str = "unknown"
    hint: str = ""
    reason: CancelReason | None = None
    status: int | None = None

    @property
    def line(self) -> str:
        """The line that is shown instead of the answer: one of five words for the class of a failed send, or the cause
        if no provider is to blame."""
        word = self.code if self.code in _NO_FAILURE else self.label
        return f"[error: {word}] {self.message}"


class ChatAnswer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The assistant's messages, with the tool rounds between them, in a form that can be sent again.

    `finish` is why the answer ended; `cancelled` marks a partial answer, with its `reason`. `exchange` is the id of its
    exchange. `predicted` is the estimate of its prompt, to compare with the counts in `usage`. `run` is the id of the
    run with tools that it came from, if any: then `usage` covers all its requests, and `predicted` the first. `cost` is
    in US dollars, None if unknown.
    """

    messages: tuple[Message, ...] = ()
    model: str = ""
    finish: str = ""
    usage: Usage | None = None
    predicted: int | None = None
    exchange: str = ""
    at: float = 0.0
    seconds: float | None = None
    run: str = ""
    reason: CancelReason | None = None
    cost: float | None = None

    @property
    def text(self) -> str:
        """Its text. Messages with tool calls between them are separated by a blank line."""
        if len(self.messages) == 1 and len(self.messages[0].parts) == 1:  # the usual case, and filters read them all
            only = self.messages[0].parts[0]
            return only.text if isinstance(only, Text) else ""
        spoken = (
            "".join(part.text for part in message.parts if isinstance(part, Text))
            for message in self.messages
            if message.role == "assistant"
        )
        return "\n\n".join(words for words in spoken if words)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The citations, in order."""
        return tuple(each for part in self._parts if isinstance(part, Text) for each in part.citations)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that were called, each once."""
        return tuple(dict.fromkeys(part.name for part in self._parts if isinstance(part, ToolCall)))

    @property
    def is_partial(self) -> bool:
        """Whether the answer was aborted."""
        return self.finish in ("cancelled", "error")

    @property
    def _parts(self) -> tuple[Part, ...]:
        return tuple(part for message in self.messages for part in message.parts)


def answer_of(reply: Reply, *, rounds: tuple[Message, ...] = (), exchange: str = "", at: float = 0.0) -> ChatAnswer:
    """The answer for a provider's reply after these tool rounds. Pointers into the reply's bytes are dropped."""
    parts = tuple(msgspec.structs.replace(part, at="", extras={}) for part in reply.choice.parts)
    last = (Message("assistant", parts),) if parts else ()
    return ChatAnswer(
        messages=(*rounds, *last),
        model=reply.model or "",
        finish=reply.choice.finish or "",
        usage=reply.usage,
        exchange=exchange,
        at=at,
    )


def text_answer(text: str, *, model: str = "", at: float = 0.0) -> ChatAnswer:
    return ChatAnswer(messages=(Message("assistant", (Text(text),), bare=True),), model=model, finish="stop", at=at)


class MessagePair(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question and, once it has arrived, its answer. `at` is when it was asked, in seconds since 1970.

    `asking` is the model that is being asked while an earlier answer is kept. `hand` overrides the filter: `in` or
    `out`. `earlier` has the replaced answers, oldest first. `summary_of` has the pairs that this summary replaces.
    `run` is the run with tools last started for its answer. If `is_edited`, the user changed its text in a held
    request, and this is the text that was sent.
    """

    id: str
    topic: str = ""
    model: str = ""
    asking: str = ""
    user_text: str = ""
    attachments: tuple[Part, ...] = ()
    answer: ChatAnswer | None = None
    earlier: tuple[ChatAnswer, ...] = ()
    star: Star = 0
    flag: Flag = "blue"
    state: LifecycleState = "idle"
    trouble: Trouble | None = None
    hand: Hand = ""
    at: float = 0.0
    exchange: str = ""
    summary_of: tuple[str, ...] = ()
    run: str = ""
    is_edited: bool = False

    @property
    def assistant_text(self) -> str:
        """The text of the answer; empty if there is none."""
        return "" if self.answer is None else self.answer.text


TRIMMED_FOR: frozenset[Code] = frozenset({Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE})
"""Failures that a smaller request can avoid. A rate limit is not one of them."""


def trouble_of(fault: Fault) -> Trouble:
    """The failure as it is shown instead of the answer. The chat's own codes are more precise than the Fault's."""
    finer = fault.details.get("code") if fault.code in _REFINED and isinstance(fault.details, dict) else None
    code = finer if finer in _OWN else fault.code.value
    return Trouble(str(code), fault.message, fault.label, fault.hint, status=fault.status)


def prompt_too_large(tokens: int, limit: int, reserved: int) -> Fault:
    """The fault if the prompt does not fit, even without any history."""
    beside = f", of which {reserved:,} are taken by the system prompt and the tools" if reserved else ""
    return Fault(
        Code.CONTEXT_OVERFLOW,
        f"the prompt has about {tokens:,} tokens and the model takes {limit:,}{beside}",
        hint="Shorten the prompt or its attachments, or choose a model with a larger window. Nothing was sent.",
        details={"code": "user_prompt_too_large"},
    )


def overflow_after_trimming(last: Fault, trimmed: int, attempts: int) -> Fault:
    """The fault if the request is still too large after the allowed number of trims, or after all that trimming can
    do."""
    left_out = f"{trimmed} pair{'s were' if trimmed != 1 else ' was'} left out in {attempts} "
    tried = f"{left_out}further attempt{'s' if attempts != 1 else ''}" if attempts else "nothing more could be left out"
    return Fault(
        last.code,
        f"the request is still too large: {tried}; the provider says: {last.message}",
        hint="Shorten the prompt, narrow the filter, compact older pairs, allow more trim attempts, or choose a model "
        "with a larger window. Your history is as it was.",
        status=last.status,
        details={"code": "context_overflow_after_trimming"},
        numbers=last.numbers,
    )


def filter_changed(last: Fault) -> Fault:
    """The fault if the filter changed during the send, so that its context is no longer the one on screen."""
    return Fault(
        Code.CANCELLED,
        f"the filter was changed while the request was made smaller, so it was not sent again; the provider had said: "
        f"{last.message}",
        hint="Look at what is visible now, and ask again.",
        details={"code": "filter_changed"},
    )


_REFINED = frozenset({*TRIMMED_FOR, Code.CANCELLED})
_OWN = frozenset({"user_prompt_too_large", "context_overflow_after_trimming", "filter_changed"})


AttachmentKind: TypeAlias = Literal["text", "image", "document", "audio", "other"]

_POSSIBLE = "Text, images (PNG, JPEG, GIF, WebP), PDFs and audio (WAV, MP3) can be attached."
_FENCES = re.compile(r"`{3,}")
_FENCED = re.compile(r"File: (?P<name>.*)\n(?P<fence>`{3,})\n(?P<text>.*?)\n?(?P=fence)\n", re.DOTALL)


def attachment(data: bytes, name: str, place: str = "") -> Part:
    """The part for these bytes, by their content rather than the name. `place` is the file's name in error messages."""
    place, kind = place or name, sniff(data, name)
    if is_text(kind):
        return Text(_fence(data.decode(encoding_of(data)), name, place))
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind == "application/pdf":
        return Document(inline, name)
    match kind.partition("/")[0]:
        case "image":
            return Image(inline)
        case "audio":
            return Audio(inline)
        case _:
            raise _refusal(data, kind, place)


_ATTACHMENT_KINDS: Mapping[type[Part], AttachmentKind] = {
    Text: "text", Image: "image", Document: "document", Audio: "audio",
}  # fmt: skip


def kind_of(part: Part) -> AttachmentKind:
    """The kind of a part, as it is named on screen."""
    return _ATTACHMENT_KINDS.get(type(part), "other")


def name_of(part: Part) -> str:
    """The file's name; empty if unknown."""
    match part:
        case Text(text=text):
            found = _FENCED.fullmatch(text)
            return "" if found is None else found["name"]
        case Document(title=title):
            return title or ""
        case _:
            return ""


def text_in(text: str) -> str:
    """The text of a text file, without the fences around it."""
    found = _FENCED.fullmatch(text)
    return text if found is None else found["text"]


def _fence(text: str, name: str, place: str) -> str:
    """The text under its name, in a fence longer than any fence inside it."""
    if not text.strip():
        raise Fault(Code.USAGE, f"{place}: the file has no text", hint="Leave it out.")
    fence = max(_FENCES.findall(text), key=len, default="``") + "`"
    end = "" if text.endswith("\n") else "\n"
    return f"File: {name}\n{fence}\n{text}{end}{fence}\n"


def _refusal(data: bytes, kind: str, place: str) -> Fault:
    encoding = encoding_of(data).removesuffix("-sig")  # so that a byte order mark counts among the bytes
    if kind == BINARY and (encoding != "utf-8" or b"\0" not in data):
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            message = f"{place}: this is not valid {encoding.upper()} text: byte {error.start}"
            return Fault(Code.USAGE, message, hint=f"Save it as UTF-8. {_POSSIBLE}")
    what = "an unknown kind of file" if kind == BINARY else kind
    return Fault(Code.USAGE, f"{place}: {what} cannot be attached", hint=_POSSIBLE)
