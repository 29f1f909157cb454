"""A whole reply as a generateContent answer, and what both it and a stream say of one part and one candidate."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from sightline.dialects.dialect import Client
from sightline.dialects.gemini.citations import write_citations
from sightline.dialects.gemini.errors import write_error
from sightline.dialects.gemini.field_names import NAME, restore_extras
from sightline.dialects.gemini.parts_write import call_part, media_part
from sightline.dialects.gemini.reply_fields import write_finish, write_logprobs, write_usage
from sightline.dialects.gemini.signatures import REDACTED, for_client
from sightline.dialects.losses import describe, lose_partial
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
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
from sightline.model.reply import Choice, Reply, TokenLogprob
from sightline.model.report import Report

_LAST_SECOND = 253_402_300_800
"""The end of the year 9999, behind which there are no dates."""


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The body of a reply. One that failed has no form here but the error."""
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return write_error(reply.fault)[1]
    same = reply.dialect == NAME
    body: JsonObject = {
        "candidates": [_candidate(choice, index, report, same=same) for index, choice in enumerate(reply.choices)]
    }
    if reply.usage is not None:
        counts = write_usage(reply.usage, report)
        body["usageMetadata"] = restore_extras(counts, reply.usage.extras) if same else counts
    return body | identity(reply.id or client.id, reply.model or client.model, reply.created or client.created)


def identity(reply_id: str, model: str, created: int) -> JsonObject:
    """The fields that name a reply, as far as they are known."""
    fields: JsonObject = {}
    if model:
        fields["modelVersion"] = model
    if 0 < created < _LAST_SECOND:
        fields["createTime"] = _rfc3339(created)
    if reply_id:
        fields["responseId"] = reply_id
    return fields


def write_part(part: Part, report: Report, *, same: bool = False) -> JsonObject | None:
    """One part of an answer; None if there is nothing to say or no way to say it."""
    wire: JsonObject | None
    match part:
        case Text():
            wire = _text(part)
        case Thinking():
            wire = _thought(part, report)
        case ToolCall():
            if part.kind == "custom":
                report.lose(part.at, "that the call takes free text", "it became an object with one string", "identity")
            wire = add_signature(call_part(part, report), for_client(part.signature, part.signed_by))
        case Image():
            wire = _picture(part, report, same=same)
        case Document() | Audio():
            wire = media_part(part, "", report, same=same)
        case Refusal():
            report.lose(part.at, "that it is a refusal", "gemini has only text for it", "identity")
            wire = {"text": part.text} if part.text else None
        case Opaque():
            return _opaque(part, report)
        case ToolResult() | CacheBreakpoint():
            report.lose(part.at, "a part that no answer has", "gemini has none in a reply", "content")
            return None
        case unreachable:
            assert_never(unreachable)
    return restore_extras(wire, part.extras) if same and wire is not None and part.extras else wire


def _text(part: Text) -> JsonObject | None:
    wire = add_signature({"text": part.text}, for_client(part.signature, part.signed_by))
    return None if len(wire) == 1 and not part.text else wire


def _picture(part: Image, report: Report, *, same: bool) -> JsonObject | None:
    wire = media_part(part, "", report, same=same)
    return None if wire is None else add_signature(wire, for_client(part.signature, part.signed_by))


def add_signature(wire: JsonObject, seal: str | None) -> JsonObject:
    """The part with its seal."""
    if seal is not None:
        wire["thoughtSignature"] = seal
    return wire


def about(
    citations: Iterable[tuple[int, Citation]],
    texts: list[tuple[int, str]],
    logprobs: tuple[TokenLogprob, ...],
    at: str,
    report: Report,
) -> JsonObject:
    """What a candidate says beside its content and its finish."""
    fields: JsonObject = {}
    sources = write_citations(list(citations), texts, report)
    if sources:
        fields["citationMetadata"] = {"citationSources": sources}
    if logprobs:
        fields["logprobsResult"] = write_logprobs(logprobs)
        if any(token.bytes is not None for token in logprobs):
            report.lose(at, "bytes of the tokens", "gemini gives tokens as text", "identity")
    return fields


def _candidate(choice: Choice, index: int, report: Report, *, same: bool) -> JsonObject:
    parts: list[Json] = []
    texts: list[tuple[int, str]] = []
    citations: list[tuple[int, Citation]] = []
    for number, part in enumerate(choice.parts):
        wire = write_part(part, report, same=same)
        if wire is not None:
            parts.append(wire)
        if isinstance(part, (Text, Refusal)):
            texts.append((number, part.text))
        if isinstance(part, Text):
            citations.extend((number, citation) for citation in part.citations)
    candidate: JsonObject = {"content": {"parts": parts, "role": "model"}}
    if choice.finish is not None:
        candidate["finishReason"] = write_finish(choice, choice.finish, report)
    candidate["index"] = index
    return candidate | about(citations, texts, choice.logprobs, choice.logprobs_at, report)


def _thought(part: Thinking, report: Report) -> JsonObject | None:
    if part.id is not None and part.signed_by is None:
        report.lose(part.at, "id of the reasoning", "gemini has no ids on thoughts", "identity")
    seal = for_client(part.signature, part.signed_by, REDACTED if part.redacted else part.id)
    words = _words(part)
    if part.summary and words != part.summary[0]:
        lose_pieces(part.at, report)
    wire = add_signature({"text": words, "thought": True}, seal)
    return wire if wire["text"] or "thoughtSignature" in wire else None


def lose_pieces(at: str, report: Report) -> None:
    """Report that reasoning in several pieces becomes one text."""
    report.lose(at, "pieces of the reasoning summary", "gemini has one text for a thought", "identity")


def _words(part: Thinking) -> str:
    """All that can be read of some reasoning: the summary, then the reasoning itself where there are both."""
    summary = "\n\n".join(part.summary)
    return part.text if not summary or summary == part.text else f"{summary}\n\n{part.text}"


def _opaque(part: Opaque, report: Report) -> JsonObject | None:
    if part.dialect == NAME and isinstance(part.value, dict):
        return part.value
    if not part.mirrored:
        report.lose(part.at, describe(part), "gemini has no such part", "content")
    return None


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
