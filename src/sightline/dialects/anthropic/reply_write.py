"""A reply to a Messages body for a client of this API."""

import hashlib
from typing import assert_never

from sightline.dialects.anthropic.blocks import arguments_object, write_citation
from sightline.dialects.anthropic.errors import error_body
from sightline.dialects.anthropic.names import NAME, STOP_DETAILS, stop_reason_of
from sightline.dialects.anthropic.usage import write_usage
from sightline.dialects.dialect import Client
from sightline.dialects.losses import describe, lose_choices, lose_partial, lose_pieces, thinking_words
from sightline.dialects.signatures import NEXT, wrap
from sightline.dialects.streaming import truncation_fault
from sightline.dialects.tool_names import INPUT, as_function_arguments, flat_name
from sightline.model.events import Finished
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.reply import Reply, Usage
from sightline.model.report import Report
from sightline.wire.pointer import parse_pointer

UNSIGNED = "unsigned"
"""The maker of thinking that is not signed, so that we recognise it when the client sends it back."""

DEFAULT_ID = "msg_0"

KEPT = (STOP_DETAILS, "container", "context_management")
"""Unmodelled fields of a reply that only this API has; they are written back."""

_EXPLANATION = f"/{STOP_DETAILS}/explanation"
_INVENTED = f"{NAME} demands it and it is not known"


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The body. A failure has no form among messages: it is the API's error body."""
    choice = reply.choice
    finish = choice.finish
    ended = None if finish is None else Finished(finish, 0, choice.detail, choice.stop_sequence, choice.finish_at)
    stop_reason = None if ended is None else write_finish(ended, report, has_calls=bool(choice.tool_calls))
    if reply.fault is not None or (finish is not None and stop_reason is None):
        lose_partial(reply, NAME, report)
        return error_body(reply.fault or truncation_fault())
    lose_choices(reply, NAME, report)
    lose_created(reply.created, reply.places, report)
    if choice.logprobs:
        lose_logprobs(choice.logprobs_at, report)
    identity, model = identity_of(reply.id, reply.model, client, report)
    kept: JsonObject = {}
    for field in reply.unmodelled:
        keep(kept, field.at, field.value)
    content: list[Json] = []
    for part in choice.parts:
        if isinstance(part, Refusal) and is_explanation(part.at):
            keep(kept, part.at, part.text)
        else:
            content += reply_blocks(part, identity, len(content), report)
    add_uncounted(reply.usage, client, report)
    body: JsonObject = {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": choice.stop_sequence,
        "usage": write_usage(reply.usage, client.input_tokens),
    }
    return body | kept


def keep(kept: JsonObject, at: str, value: Json) -> None:
    """Collect a field that only this API has under the name that it has here; any other is left out."""
    *_, holder, key = ("", "", *parse_pointer(at))
    if key in KEPT:
        kept[key] = value
    elif holder == STOP_DETAILS:
        details = kept.setdefault(STOP_DETAILS, {})
        if isinstance(details, dict):
            details[key] = value


def is_explanation(at: str) -> bool:
    """Whether a refusal that stood here explains the end of the message and is no block of it."""
    return at.endswith(_EXPLANATION)


def identity_of(reply_id: str | None, model: str | None, client: Client, report: Report) -> tuple[str, str]:
    """The id and the model that a message names; what is not known is listed."""
    reply_id, model = reply_id or client.id, model or client.model
    if not reply_id:
        report.add("/id", "id of the reply", _INVENTED, "identity")
    if not model:
        report.add("/model", "an empty name of the model", _INVENTED, "identity")
    return reply_id or DEFAULT_ID, model


def add_uncounted(usage: Usage | None, client: Client, report: Report) -> None:
    """List the counts that are zero because they were not counted."""
    usage = usage or Usage()
    if usage.input_tokens is None and not client.input_tokens:
        report.add("/usage/input_tokens", "a count of 0", _INVENTED, "identity")
    if usage.output_tokens is None:
        report.add("/usage/output_tokens", "a count of 0", _INVENTED, "identity")


def lose_created(created: int | None, places: dict[str, str], report: Report) -> None:
    """The API dates nothing."""
    if created is not None:
        report.lose(places.get("created", "/created"), "time of the reply", f"{NAME} has no such field", "identity")


def lose_logprobs(at: str, report: Report) -> None:
    """The API tells no probabilities."""
    report.lose(at, "logprobs", f"{NAME} has no such field", "option")


def write_finish(finished: Finished, report: Report, *, has_calls: bool) -> str | None:
    """The stop reason; None for a failure, which has none."""
    finish, detail = finished.finish, finished.detail
    word = stop_reason_of(finish, detail, finished.stop_sequence, has_calls=has_calls)
    if finish == "content_filter":
        report.lose(finished.at, "that a filter stopped it", "the nearest stop reason is refusal", "option")
    if detail is not None and word is not None and word != detail:
        report.lose(finished.at, f"the provider's own word {detail!r}", f"{NAME} says {word}", "identity")
    return word


def reply_blocks(part: Part, message_id: str, index: int, report: Report) -> list[JsonObject]:
    """The blocks of one part: usually one, with one before it for a signature that has no place in it, or none."""
    match part:
        case Text():
            return _text_blocks(part, report)
        case Refusal(text):
            lose_refusal(part.at, report)
            return _text_blocks(Text(text), report)
        case Thinking():
            if part.redacted:
                return [{"type": "redacted_thinking", "data": signature_text(part.signature, part.signed_by, part.id)}]
            text = thinking_words(part)
            if not text and part.signed_by is None:
                return []
            if part.summary and text != part.summary[0]:
                lose_pieces(part.at, NAME, report)
            note_signature(part.signed_by, index, report)
            return [thinking_block(text, signature_text(part.signature, part.signed_by, part.id))]
        case ToolCall():
            before = [] if part.signature is None else [signature_block(part.signature, part.signed_by)]
            return [*before, _tool_use(part, message_id, index + len(before), report)]
        case Opaque(dialect, value):
            if dialect == NAME and isinstance(value, dict):
                return [value]
            if not part.mirrored:
                report.lose(part.at, describe(part), f"{NAME} does not know it", "content")
            return []
        case Image() | Audio() | Document() | ToolResult() | CacheBreakpoint():
            kind = type(part).__name__.lower()
            report.lose(part.at, f"{kind} in a reply", f"a reply of {NAME} holds none", "content")
            return []
        case unreachable:
            assert_never(unreachable)


def _text_blocks(part: Text, report: Report) -> list[JsonObject]:
    written = [write_citation(citation, report) for citation in part.citations]
    citations: list[Json] = [value for value in written if value is not None]
    if not part.text and not citations:
        return [] if part.signature is None else [signature_block(part.signature, part.signed_by)]
    if part.signature is not None:
        lose_signature(part.at, report)
    block: JsonObject = {"type": "text", "text": part.text}
    if citations:
        block["citations"] = citations
    return [block]


def thinking_block(text: str, signature: str) -> JsonObject:
    return {"type": "thinking", "thinking": text, "signature": signature}


def signature_text(signature: str | None, signed_by: str | None, item: str | None) -> str:
    """The value of the signature field: our own as it is, another's under its maker's name."""
    if signed_by == NAME:
        return signature or ""
    return wrap(signature, signed_by or UNSIGNED, item)


def note_signature(signed_by: str | None, index: int, report: Report) -> None:
    """Report a signature that stands for none: the provider has not signed its reasoning."""
    if not signed_by:
        what, why = "signature of reasoning that is not signed", f"{NAME} demands one"
        report.add(f"/content/{index}/signature", what, why, "identity")


def signature_block(signature: str, signed_by: str | None) -> JsonObject:
    """An empty thinking block that carries the signature of the part behind it."""
    return thinking_block("", wrap(signature, signed_by or UNSIGNED, NEXT))


def lose_signature(at: str, report: Report) -> None:
    """Words leave before their signature is known, and behind them it would belong to something else."""
    report.lose(at, "a signature over text", f"{NAME} has no place for it", "identity")


def lose_refusal(at: str, report: Report) -> None:
    """A refusal is ordinary text here."""
    report.lose(at, "that these words are a refusal", f"{NAME} has no such block", "identity")


def _tool_use(part: ToolCall, message_id: str, index: int, report: Report) -> JsonObject:
    lose_call_form(part.at, part.item, part.kind, report)
    arguments = as_function_arguments(part)
    value = arguments_object(arguments)
    if value is None:
        lose_arguments(part.at, report)
        value = {INPUT: arguments}
    call_id = part.id or call_id_for(message_id, index, report)
    return tool_use_block(call_id, flat_name(part.name, part.namespace), value)


def tool_use_block(call_id: str, name: str, value: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": value}


def call_id_for(message_id: str, index: int, report: Report) -> str:
    """An id for a call that came without one; the same for the same reply, another in the next."""
    report.add(f"/content/{index}/id", "id of a tool call", f"{NAME} demands one", "identity")
    return "toolu_" + hashlib.sha256(f"{message_id}/{index}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def lose_call_form(at: str, item: str | None, kind: str, report: Report) -> None:
    """What a tool_use block does not say of a call."""
    if item is not None:
        report.lose(at, "id of the item", f"{NAME} has blocks, not items", "identity")
    if kind == "custom":
        report.lose(at, "that the call takes free text", "it became an object with one string", "identity")


def lose_arguments(at: str, report: Report) -> None:
    """The API takes an object."""
    report.lose(at, "arguments as they were written", f"{NAME} takes a JSON object only", "content")
