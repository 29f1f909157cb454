"""Writing a whole Chat Completions reply."""

from sightline.dialects.dialect import Client
from sightline.dialects.fields import compact
from sightline.dialects.openai_chat.choices import write_citation, write_finish, write_token
from sightline.dialects.openai_chat.errors import write_error
from sightline.dialects.openai_chat.names import GEMINI, NAME, SEAL, SEAL_ID
from sightline.dialects.openai_chat.usage import write_usage
from sightline.dialects.seals import wrap
from sightline.dialects.tool_names import flat_name
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Inline, Opaque, Part, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report

DEFAULT_ID = "chatcmpl-0"


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as a `chat.completion`, or the error body of one that failed."""
    if reply.fault is not None:
        _lose_around(reply, report)
        return write_error(reply.fault)[1]
    document: JsonObject = {
        "id": reply.id or client.id or DEFAULT_ID,
        "object": "chat.completion",
        "created": reply.created or client.created,
        "model": reply.model or client.model,
        "choices": [
            _write_choice(choice, index, report, own=reply.dialect == NAME)
            for index, choice in enumerate(reply.choices)
        ],
    }
    if reply.usage is not None:
        document["usage"] = write_usage(reply.usage)
    return document


def _lose_around(reply: Reply, report: Report) -> None:
    """An error body holds the error only."""
    why = f"an error body of {NAME} holds the error only"
    report.lose("", "id, model and usage of a reply that failed", why, "identity")
    for choice in reply.choices:
        for part in choice.parts:
            report.lose(part.at, "part of a reply that failed", why, "content")


def _write_choice(choice: Choice, index: int, report: Report, *, own: bool) -> JsonObject:
    lose_finish(choice, report, own=own)
    document: JsonObject = {
        "index": index,
        "message": _Message(report).write(choice.parts),
        "logprobs": None,
        "finish_reason": write_finish(choice),
    }
    if choice.logprobs:
        document["logprobs"] = {"content": [write_token(token) for token in choice.logprobs], "refusal": None}
    return document


def lose_finish(choice: Choice, report: Report, *, own: bool) -> None:
    """Report what the finish words of this dialect do not say."""
    if choice.finish == "pause":
        report.lose(choice.finish_at, "pause of the turn", f"{NAME} knows no pause", "option")
    if choice.stop_sequence is not None:
        place = choice.stop_at or choice.finish_at
        report.lose(place, "the text that stopped it", f"{NAME} does not say which it was", "identity")
    if choice.detail is not None and not own:
        report.lose(choice.finish_at, f"finish {choice.detail!r}", f"{NAME} has a coarser word", "identity")


class _Message:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._texts: list[str] = []
        self._thoughts: list[Thinking] = []
        self._calls: list[Json] = []
        self._annotations: list[Json] = []
        self._beside: JsonObject = {}

    def write(self, parts: tuple[Part, ...]) -> JsonObject:
        for part in parts:
            self._part(part)
        message: JsonObject = {
            "role": "assistant",
            "content": "".join(self._texts) if self._texts else None,
            "refusal": None,
        }
        message |= write_thinking(self._thoughts, self._report)
        if self._annotations:
            message["annotations"] = self._annotations
        message |= self._beside
        if self._calls:
            message["tool_calls"] = self._calls
        return message

    def _part(self, part: Part) -> None:
        match part:
            case Text(text):
                self._text(part, text)
            case Thinking():
                self._thoughts.append(part)
            case Refusal(text):
                self._beside["refusal"] = f"{self._beside.get('refusal', '')}{text}"
            case ToolCall():
                self._calls.append(write_call(part, self._report))
            case Audio():
                self._beside["audio"] = write_audio(part)
            case Opaque(dialect="openai-chat", value=value) if "/tool_calls/" in part.at:
                self._calls.append(value)
            case _:
                self._report.lose(
                    part.at, f"{part.__class__.__name__.lower()} part", f"a {NAME} reply has none", "content"
                )

    def _text(self, part: Text, text: str) -> None:
        offset = sum(map(len, self._texts))
        self._texts.append(text)
        if part.signature is not None:
            self._report.lose(part.at, "signature", f"{NAME} has no field for it", "identity")
        for citation in part.citations:
            annotation = write_citation(citation, offset)
            if annotation is None:
                self._report.lose(
                    citation.at or part.at, "citation", f"{NAME} cites URLs with their place only", "option"
                )
            else:
                self._annotations.append(annotation)


def write_call(call: ToolCall, report: Report) -> JsonObject:
    """An entry of `tool_calls`."""
    kind, words = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
    document: JsonObject = {
        "id": call.id,
        "type": kind,
        kind: {"name": flat_name(call.name, call.namespace), words: call.arguments},
    }
    lose_item(call, report)
    if call.signature is not None:
        if call.signed_by == GEMINI:
            document["extra_content"] = {"google": {"thought_signature": call.signature}}
        else:
            report.lose(call.at, "signature", f"{NAME} has no field for it", "identity")
    return document


def lose_item(call: ToolCall, report: Report) -> None:
    """A call of this dialect has one id, that which its result will name."""
    if call.item is not None:
        report.lose(call.at, "id of an item", f"{NAME} calls have one id", "identity")


def write_thinking(thoughts: list[Thinking], report: Report) -> JsonObject:
    """The fields for reasoning: one text, and its seal."""
    texts = [part.text for part in thoughts if part.text]
    for part in thoughts:
        if len(part.summary) > 1 or (part.summary and part.text != part.summary[0]):
            report.lose(part.at, "pieces of the reasoning summary", f"{NAME} has one text for it", "identity")
    return compact({"reasoning_content": "\n\n".join(texts) or None, **write_seal(thoughts, report)})


def write_seal(thoughts: list[Thinking], report: Report) -> JsonObject:
    """The fields for the seal of the reasoning, another dialect's wrapped so that the client can bring it back.

    A seal is only good for the text that it was made for, so where several texts become one it is lost.
    """
    sealed = [part for part in thoughts if part.signature is not None or part.id is not None]
    if len(thoughts) == 1 and (maker := thoughts[0].signed_by) is not None and not thoughts[0].redacted:
        signature, item = thoughts[0].signature, thoughts[0].id
        return compact({SEAL: signature, SEAL_ID: item}) if maker == NAME else {SEAL: wrap(signature, maker, item)}
    for part in sealed:
        report.lose(part.at, "signature of the reasoning", f"{NAME} has a field for one only", "identity")
    return {}


def write_audio(part: Audio) -> JsonObject:
    """Spoken output."""
    data = part.source.data if isinstance(part.source, Inline) else None
    return compact({"id": part.id, "data": data, "transcript": part.transcript, **part.extras})
