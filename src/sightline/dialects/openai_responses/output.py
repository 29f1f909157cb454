"""The output of a reply as it is written: one open item at a time, and the snapshots of those that are done.

Whole replies and streams are both made here, so that a snapshot cannot differ from what was streamed.
"""

import re

import msgspec

from sightline.dialects.fields import compact
from sightline.dialects.losses import describe
from sightline.dialects.openai_responses.annotations import write_annotation
from sightline.dialects.openai_responses.client_tools import BY_KIND, complete_call
from sightline.dialects.openai_responses.names import NAME, REDACTED
from sightline.dialects.openai_responses.open_items import Emit, OpenCall, OpenClientCall, OpenMessage, OpenReasoning
from sightline.dialects.openai_responses.reasoning import write_seal
from sightline.dialects.signatures import NEXT
from sightline.model.events import SignatureReceived, ToolCallBegun
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Image, Inline, Opaque, Part, Thinking
from sightline.model.reply import TokenLogprob
from sightline.model.report import Report

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_STEM = 40
_CALL = "call"
_PICTURES = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp", "image/gif": "gif"}


class Output:
    """Takes an answer piece by piece. `block` numbers the parts of the answer, `items` are the finished ones."""

    def __init__(self, reply_id: str, report: Report, emit: Emit) -> None:
        self.items: list[Json] = []
        self.has_refusal = False
        self._stem = _UNSAFE.sub("", reply_id)[-_STEM:]
        self._report = report
        self._emit = emit
        self._open: OpenMessage | OpenReasoning | OpenCall | OpenClientCall | None = None
        self._unplaced: list[TokenLogprob] = []

    def text(self, block: int, text: str) -> None:
        """Some words."""
        self._message().say(block, "output_text", text)
        self._place_logprobs()

    def refusal(self, block: int, text: str) -> None:
        """Some words of declining; without words there is nothing to tell."""
        if not text:
            return
        self.has_refusal = True
        self._message().say(block, "refusal", text)

    def cite(self, block: int, citation: Citation) -> None:
        """A source of a text."""
        annotation = write_annotation(citation, self._report)
        if annotation is not None:
            message = self._message()
            message.say(block, "output_text", "")
            message.annotate(annotation)

    def logprobs(self, tokens: tuple[TokenLogprob, ...]) -> None:
        """How likely the last tokens were; they wait for a text if none is open."""
        self._unplaced.extend(tokens)
        self._place_logprobs()

    def _place_logprobs(self) -> None:
        if self._unplaced and isinstance(self._open, OpenMessage) and self._open.weigh(self._unplaced):
            self._unplaced = []

    def _message(self) -> OpenMessage:
        """The open message: words that follow each other share one."""
        if isinstance(self._open, OpenMessage):
            return self._open
        self.close()
        message = OpenMessage(self._emit, self._id("msg"), len(self.items))
        self._emit_item_added(message.start())
        self._open = message
        return message

    def thinking(self, block: int, text: str, *, piece: int = 0, summary: bool = False) -> None:
        """Some reasoning."""
        self._reasoning(block).think(text, piece=piece, summary=summary)

    def sign(self, seal: SignatureReceived) -> None:
        """The seal over some reasoning, which may have no words at all."""
        self._reasoning(seal.part, seal.id if seal.signed_by == NAME else None).sign(seal)

    def _reasoning(self, block: int, own_id: str | None = None) -> OpenReasoning:
        if isinstance(self._open, OpenReasoning) and self._open.block == block:
            return self._open
        self.close()
        reasoning = OpenReasoning(self._emit, own_id or self._id("rs"), len(self.items), block)
        self._emit_item_added(reasoning.start())
        self._open = reasoning
        return reasoning

    def seal_next(self, signature: str | None, signed_by: str | None) -> None:
        """The seal over the part that comes next and has no field for it here."""
        self._write_signature_item(signature, signed_by, NEXT)

    def _write_signature_item(self, signature: str | None, signed_by: str | None, bound: str) -> None:
        """A reasoning item that is nothing but its seal."""
        self.close()
        item_id = self._id("rs")
        sealed = write_seal(signature, signed_by, bound, item_id)
        self._whole({"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": sealed})

    def call(self, begun: ToolCallBegun) -> None:
        """A call has begun."""
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
        """A fragment of the open call's arguments."""
        if isinstance(self._open, (OpenCall, OpenClientCall)):
            self._open.write(fragment)

    def complete(self, extras: JsonObject) -> None:
        """The open call is complete; `extras` are what its own item holds besides."""
        if isinstance(self._open, OpenClientCall):
            self._open.extras = extras
        self.close()

    def part(self, value: Part) -> None:
        """A part that comes whole."""
        match value:
            case Thinking():
                self._write_signature_item(value.signature, value.signed_by, REDACTED)
            case Opaque(dialect="openai-responses", value=dict(item)):
                self.close()
                self._whole(item)
            case Image(source=Inline(media_type, data)) if media_type in _PICTURES:
                if value.signature is not None:
                    self.seal_next(value.signature, value.signed_by)
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
                place, why = f"/output/{len(self.items)}/encrypted_content", "the next turn must know that nobody did"
                self._report.add(place, "signature of reasoning that is not signed", why, "identity")
            self._emit_item_done(item.close())
        elif item is not None:
            self._emit_item_done(item.close(status))

    def _close_client_call(self, call: OpenClientCall, status: str) -> None:
        """The item of a built-in tool's call. Arguments that it cannot hold reach the client as a function's."""
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
        """Nothing more comes; what waited for a text in vain is a loss."""
        self.close(status)
        if self._unplaced:
            self._report.lose("", "logprobs", f"{NAME} has them in a text only", "option")

    def _emit_item_added(self, item: JsonObject) -> None:
        self._emit("response.output_item.added", {"output_index": len(self.items), "item": item})

    def _emit_item_done(self, item: JsonObject) -> None:
        self._emit("response.output_item.done", {"output_index": len(self.items), "item": item})
        self.items.append(item)

    def _id(self, kind: str) -> str:
        """An id for what has none; those of items are reported together."""
        if kind != _CALL:
            self._report.add("/output", "ids of items", f"{NAME} demands them", "identity")
        return f"{kind}_{self._stem}_{len(self.items)}"
