"""Writes the output of a reply: one open item at a time, and the snapshots of the finished items.

Both whole replies and streams are made here, so that a snapshot cannot differ from what was streamed.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sightline.dialects.fields import compact
from sightline.dialects.losses import describe
from sightline.dialects.openai_responses.client_tools import BY_KIND, complete_call, write_call
from sightline.dialects.openai_responses.content import write_annotation, write_signature
from sightline.dialects.openai_responses.names import NAME, REDACTED
from sightline.dialects.signatures import NEXT
from sightline.model.events import SignatureReceived, ToolCallBegun
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Image, Inline, Opaque, Part, Thinking
from sightline.model.reply import TokenLogprob
from sightline.model.report import Report

Emit = Callable[[str, JsonObject], None]


class OpenMessage:
    """A message; its content parts are written one after the other. `block` is the number of the answer's part."""

    def __init__(self, emit: Emit, item_id: str, index: int) -> None:
        self._emit = emit
        self._place: JsonObject = {"item_id": item_id, "output_index": index}
        self._content: list[Json] = []
        self._current_part: tuple[int, str] | None = None
        self._fragments: list[str] = []
        self._annotations: list[Json] = []
        self._logprobs: list[Json] = []

    def start(self, status: str = "in_progress") -> JsonObject:
        """The item with the content so far."""
        item: JsonObject = {"id": self._place["item_id"], "type": "message", "status": status, "role": "assistant"}
        return {**item, "content": list(self._content)}

    def say(self, block: int, kind: str, text: str) -> None:
        """Add text to an `output_text` or to a `refusal`."""
        if self._current_part != (block, kind):
            self._close_text()
            self._current_part = block, kind
            self._place["content_index"] = len(self._content)
            self._emit("response.content_part.added", {**self._place, "part": self._part(kind, "")})
        self._fragments.append(text)
        if not text:
            return
        if kind == "refusal":
            self._emit("response.refusal.delta", {**self._place, "delta": text})
        else:
            self._emit("response.output_text.delta", self.next_words(text))

    def next_words(self, text: str) -> JsonObject:
        """The fields of `response.output_text.delta` for one more piece of the current text."""
        return {**self._place, "delta": text, "logprobs": []}

    def note_words(self, text: str) -> None:
        """Record that this much more of the text was emitted elsewhere."""
        self._fragments.append(text)

    def annotate(self, annotation: JsonObject) -> None:
        """Add a source of the current text."""
        place: JsonObject = {**self._place, "annotation_index": len(self._annotations)}
        self._emit("response.output_text.annotation.added", {**place, "annotation": annotation})
        self._annotations.append(annotation)

    def weigh(self, tokens: list[TokenLogprob]) -> bool:
        """Add logprobs for the current text; False if there is none."""
        if self._current_part is None or self._current_part[1] == "refusal":
            return False
        self._logprobs.extend(
            {**_write_logprob(token), "top_logprobs": [_write_logprob(other) for other in token.top]}
            for token in tokens
        )
        return True

    def close(self, status: str) -> JsonObject:
        """The finished message."""
        self._close_text()
        return self.start(status)

    def _close_text(self) -> None:
        if self._current_part is None:
            return
        kind, text = self._current_part[1], "".join(self._fragments)
        part = self._part(kind, text)
        if kind == "refusal":
            self._emit("response.refusal.done", {**self._place, "refusal": text})
        else:
            self._emit("response.output_text.done", {**self._place, "text": text, "logprobs": list(self._logprobs)})
        self._emit("response.content_part.done", {**self._place, "part": part})
        self._content.append(part)
        self._fragments, self._annotations, self._logprobs = [], [], []
        self._current_part = None

    def _part(self, kind: str, text: str) -> JsonObject:
        if kind == "refusal":
            return {"type": kind, "refusal": text}
        part: JsonObject = {"type": kind, "text": text, "annotations": list(self._annotations)}
        return {**part, "logprobs": list(self._logprobs)} if self._logprobs else part


class _PieceEvents(NamedTuple):
    part: str
    text: str
    place: str
    type: str


_SUMMARY = _PieceEvents(
    "response.reasoning_summary_part", "response.reasoning_summary_text", "summary_index", "summary_text"
)
_CONTENT = _PieceEvents("response.content_part", "response.reasoning_text", "content_index", "reasoning_text")


class OpenReasoning:
    """A reasoning item. Reasoning is shown as its summary, unless it also has a summary of its own."""

    def __init__(self, emit: Emit, item_id: str, index: int, block: int) -> None:
        self.block = block
        self._emit = emit
        self._place: JsonObject = {"item_id": item_id, "output_index": index}
        self._pieces: dict[_PieceEvents, list[Json]] = {_SUMMARY: [], _CONTENT: []}
        self._current_piece: tuple[bool, int] | None = None
        self._into = _SUMMARY
        self._has_summary = False
        self._fragments: list[str] = []
        self._signing: SignatureReceived | None = None

    def start(self) -> JsonObject:
        """The item before its first piece."""
        return {"id": self._place["item_id"], "type": "reasoning", "summary": []}

    def think(self, text: str, *, piece: int, summary: bool) -> None:
        """Add reasoning, or part of its summary."""
        if not text and not summary:
            return
        if self._current_piece != (summary, piece):
            # Begin a piece. Reasoning itself is one text, so its further pieces are appended after a blank line.
            goes_on = self._current_piece is not None and not self._current_piece[0] and not summary
            if goes_on:
                text = f"\n\n{text}"
            else:
                self._close_piece()
                self._into = _SUMMARY if summary or not self._has_summary else _CONTENT
                self._has_summary = self._has_summary or summary
                self._emit(f"{self._into.part}.added", {**self._piece_place(), "part": self._piece("")})
            self._current_piece = summary, piece
        self._fragments.append(text)
        if text:
            self._emit(f"{self._into.text}.delta", {**self._piece_place(), "delta": text})

    def sign(self, signing: SignatureReceived) -> None:
        """Set the provider's signature."""
        self._signing = signing

    @property
    def is_signed(self) -> bool:
        """Whether a provider has signed this reasoning, or can look it up."""
        return self._signing is not None and bool(self._signing.signed_by)

    def close(self) -> JsonObject:
        """The finished item."""
        self._close_piece()
        item: JsonObject = {**self.start(), "summary": self._pieces[_SUMMARY]}
        if self._pieces[_CONTENT]:
            item["content"] = self._pieces[_CONTENT]
        signing = self._signing
        item_id = str(self._place["item_id"])
        encrypted = write_signature(None, None, None, item_id)
        if signing is not None:
            encrypted = write_signature(signing.signature, signing.signed_by, signing.id, item_id)
        return item if encrypted is None else {**item, "encrypted_content": encrypted}

    def _close_piece(self) -> None:
        if self._current_piece is None:
            return
        text = "".join(self._fragments)
        self._emit(f"{self._into.text}.done", {**self._piece_place(), "text": text})
        self._emit(f"{self._into.part}.done", {**self._piece_place(), "part": self._piece(text)})
        self._pieces[self._into].append(self._piece(text))
        self._fragments, self._current_piece = [], None

    def _piece(self, text: str) -> JsonObject:
        return {"type": self._into.type, "text": text}

    def _piece_place(self) -> JsonObject:
        return {**self._place, self._into.place: len(self._pieces[self._into])}


class OpenCall:
    """A call whose arguments are still being written."""

    def __init__(self, emit: Emit, item: JsonObject, index: int, begun: ToolCallBegun) -> None:
        self._emit = emit
        self._item = item
        self._place: JsonObject = {"item_id": item["id"], "output_index": index}
        self._is_custom = begun.kind == "custom"
        self._words = "input" if self._is_custom else "arguments"
        self._event = "response.custom_tool_call_input" if self._is_custom else "response.function_call_arguments"
        self._fragments: list[str] = []

    def start(self) -> JsonObject:
        """The item before its first argument."""
        return {**self._item, "status": "in_progress", self._words: ""}

    def write(self, fragment: str) -> None:
        """Add a fragment of the arguments."""
        if fragment:
            self._fragments.append(fragment)
            self._emit(f"{self._event}.delta", {**self._place, "delta": fragment})

    def close(self, status: str) -> JsonObject:
        """The finished call; empty arguments become an empty object."""
        if not self._fragments and not self._is_custom:
            self.write("{}")
        text = "".join(self._fragments)
        self._emit(f"{self._event}.done", {**self._place, self._words: text})
        return {**self._item, "status": status, self._words: text}


class OpenClientCall:
    """A call of a built-in tool that the client runs. Its item can be written only when the whole action is known."""

    def __init__(self, head: JsonObject, begun: ToolCallBegun) -> None:
        self.begun = begun
        self.extras: JsonObject = {}
        self._head = head
        self._fragments: list[str] = []

    def write(self, fragment: str) -> None:
        """Add a fragment of the action."""
        self._fragments.append(fragment)

    @property
    def arguments(self) -> str:
        """The action as far as it has arrived."""
        return "".join(self._fragments)

    def close(self, status: str) -> JsonObject | None:
        """The finished item, None if the arguments are not an action."""
        item = write_call(self.begun.kind, self.arguments, {**self._head, "status": status})
        return None if item is None else {**item, **self.extras}


def _write_logprob(token: TokenLogprob) -> JsonObject:
    raw = token.token.encode("utf-8", "surrogatepass") if token.bytes is None else token.bytes
    return {"token": token.token, "logprob": token.logprob, "bytes": list(raw)}


_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_STEM = 40
_CALL = "call"
_PICTURES = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp", "image/gif": "gif"}


class Output:
    """Takes an answer piece by piece. `block` is the number of an answer's part, `items` are the finished items."""

    def __init__(self, reply_id: str, report: Report, emit: Emit) -> None:
        self.items: list[Json] = []
        self.has_refusal = False
        self._stem = _UNSAFE.sub("", reply_id)[-_STEM:]
        self._report = report
        self._emit = emit
        self._open: OpenMessage | OpenReasoning | OpenCall | OpenClientCall | None = None
        self._unplaced: list[TokenLogprob] = []

    def text(self, block: int, text: str) -> None:
        """Add text."""
        self.open_message().say(block, "output_text", text)
        self._place_logprobs()

    def refusal(self, block: int, text: str) -> None:
        """Add text of a refusal; an empty text adds nothing."""
        if not text:
            return
        self.has_refusal = True
        self.open_message().say(block, "refusal", text)

    def cite(self, block: int, citation: Citation) -> None:
        """Add a source of a text."""
        annotation = write_annotation(citation, self._report)
        if annotation is not None:
            message = self.open_message()
            message.say(block, "output_text", "")
            message.annotate(annotation)

    def logprobs(self, tokens: tuple[TokenLogprob, ...]) -> None:
        """Add the log probabilities of the latest tokens; they wait for a text if none is open."""
        self._unplaced.extend(tokens)
        self._place_logprobs()

    def _place_logprobs(self) -> None:
        if self._unplaced and isinstance(self._open, OpenMessage) and self._open.weigh(self._unplaced):
            self._unplaced = []

    def open_message(self) -> OpenMessage:
        """The open message: texts that follow each other share one."""
        if isinstance(self._open, OpenMessage):
            return self._open
        self.close()
        message = OpenMessage(self._emit, self._id("msg"), len(self.items))
        self._emit_item_added(message.start())
        self._open = message
        return message

    def thinking(self, block: int, text: str, *, piece: int = 0, summary: bool = False) -> None:
        """Add reasoning."""
        self._reasoning(block).think(text, piece=piece, summary=summary)

    def sign(self, signing: SignatureReceived) -> None:
        """Add the signature over some reasoning, which may have no text at all."""
        self._reasoning(signing.part, signing.id if signing.signed_by == NAME else None).sign(signing)

    def _reasoning(self, block: int, own_id: str | None = None) -> OpenReasoning:
        if isinstance(self._open, OpenReasoning) and self._open.block == block:
            return self._open
        self.close()
        reasoning = OpenReasoning(self._emit, own_id or self._id("rs"), len(self.items), block)
        self._emit_item_added(reasoning.start())
        self._open = reasoning
        return reasoning

    def sign_alone(self, signature: str | None, signed_by: str | None, bound: str = NEXT) -> None:
        """Write a reasoning item that consists only of its signature: usually one over the next part, which has no
        field for it here."""
        self.close()
        item_id = self._id("rs")
        encrypted = write_signature(signature, signed_by, bound, item_id)
        self._whole({"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": encrypted})

    def call(self, begun: ToolCallBegun) -> None:
        self.close()
        index, is_custom = len(self.items), begun.kind == "custom"
        if not begun.id:
            self._report.add(f"/output/{index}/call_id", "id of a tool call", f"{NAME} demands one", "identity")
        if (tool := BY_KIND.get(begun.kind)) is not None:
            head: JsonObject = {"id": begun.item or self._id(tool.stem), "call_id": begun.id or self._id(_CALL)}
            self._open = OpenClientCall(head, begun)
            return
        item = compact(
            {
                "id": begun.item or self._id("ctc" if is_custom else "fc"),
                "type": "custom_tool_call" if is_custom else "function_call",
                "call_id": begun.id or self._id(_CALL),
                "namespace": begun.namespace,
                "name": begun.name,
            }
        )
        call = OpenCall(self._emit, item, index, begun)
        self._emit_item_added(call.start())
        self._open = call

    def arguments(self, fragment: str) -> None:
        """Add a fragment of the open call's arguments."""
        if isinstance(self._open, (OpenCall, OpenClientCall)):
            self._open.write(fragment)

    def complete(self, extras: JsonObject) -> None:
        """Complete the open call; `extras` are the other fields of its own item."""
        if isinstance(self._open, OpenClientCall):
            self._open.extras = extras
        self.close()

    def part(self, value: Part) -> None:
        """Add a part that arrives as a whole."""
        match value:
            case Thinking():
                self.sign_alone(value.signature, value.signed_by, REDACTED)
            case Opaque(dialect="openai-responses", value=dict(item)):
                self.close()
                self._whole(item)
            case Image(source=Inline(media_type, data)) if media_type in _PICTURES:
                if value.signature is not None:
                    self.sign_alone(value.signature, value.signed_by)
                self.close()
                picture: JsonObject = {"id": self._id("ig"), "type": "image_generation_call", "status": "completed"}
                self._whole({**picture, "output_format": _PICTURES[media_type], "result": data})
            case _:
                self._report.lose(value.at, describe(value), f"a {NAME} reply has no such item", "content")

    def _whole(self, item: JsonObject) -> None:
        self._emit_item_added(item)
        self._emit_item_done(item)

    def close(self, status: str = "completed") -> None:
        """Finish the open item, if there is one."""
        item, self._open = self._open, None
        if isinstance(item, OpenClientCall):
            self._close_client_call(item, status)
        elif isinstance(item, OpenReasoning):
            if not item.is_signed:
                place = f"/output/{len(self.items)}/encrypted_content"
                why = "the next turn must know that it is not signed"
                self._report.add(place, "signature of reasoning that is not signed", why, "identity")
            self._emit_item_done(item.close())
        elif item is not None:
            self._emit_item_done(item.close(status))

    def _close_client_call(self, call: OpenClientCall, status: str) -> None:
        """Write the item of a built-in tool's call. Arguments that it cannot hold are sent as a function call."""
        item = call.close(status)
        if item is not None:
            self._whole(complete_call(item, f"/output/{len(self.items)}", self._report))
            return
        why = f"a {NAME} item of this kind holds a JSON object"
        self._report.lose(call.begun.at, f"that {call.begun.kind} is a built-in tool", why, "option")
        self.call(msgspec.structs.replace(call.begun, kind="function"))
        self.arguments(call.arguments)
        self.close(status)

    def end(self, status: str) -> None:
        """End the output; logprobs for which no text arrived are a loss."""
        self.close(status)
        if self._unplaced:
            self._report.lose("", "logprobs", f"{NAME} has them in a text only", "option")

    def _emit_item_added(self, item: JsonObject) -> None:
        self._emit("response.output_item.added", {"output_index": len(self.items), "item": item})

    def _emit_item_done(self, item: JsonObject) -> None:
        self._emit("response.output_item.done", {"output_index": len(self.items), "item": item})
        self.items.append(item)

    def _id(self, kind: str) -> str:
        """An id for something that has none; those of items are reported together."""
        if kind != _CALL:
            self._report.add("/output", "ids of items", f"{NAME} demands them", "identity")
        return f"{kind}_{self._stem}_{len(self.items)}"
