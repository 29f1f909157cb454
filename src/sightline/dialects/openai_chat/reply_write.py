"""Writing a whole Chat Completions reply."""

from sightline.dialects.dialect import Client
from sightline.dialects.fields import compact
from sightline.dialects.losses import describe, lose_partial
from sightline.dialects.openai_chat.choices import (
    CALL,
    THOUGHT,
    WORDS,
    CallIds,
    Order,
    write_citation,
    write_finish,
    write_token,
)
from sightline.dialects.openai_chat.errors import write_error
from sightline.dialects.openai_chat.names import GEMINI, NAME, REDACTED, SEAL, SEAL_ID
from sightline.dialects.openai_chat.usage import write_usage
from sightline.dialects.signatures import wrap
from sightline.dialects.tool_names import flat_name
from sightline.model.events import Started
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Inline, Opaque, Part, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report

DEFAULT_ID = "chatcmpl-0"


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as a `chat.completion`, or the error body of one that failed."""
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return write_error(reply.fault)[1]
    document = write_head("chat.completion", Started(reply.id, reply.model, reply.created), client, report)
    reply_id, own = reply.id or client.id, reply.dialect == NAME
    document["choices"] = [
        _write_choice(choice, _Message(report, index, reply_id), report, own=own)
        for index, choice in enumerate(reply.choices)
    ]
    if reply.usage is not None:
        document["usage"] = write_usage(reply.usage, report)
    return document


def write_head(kind: str, started: Started, client: Client, report: Report) -> JsonObject:
    """Who answers. What neither the reply nor the client knows is demanded all the same: it is made up and listed."""
    head: JsonObject = {
        "id": started.id or client.id,
        "object": kind,
        "created": started.created or client.created,
        "model": started.model or client.model,
    }
    for key, made in (("id", DEFAULT_ID), ("created", 0), ("model", "")):
        if not head[key]:
            head[key] = made
            report.add(f"/{key}", f"{key} of the reply", f"{NAME} demands it and it is not known", "identity")
    return head


def note_call_id(place: str, report: Report) -> None:
    """List an id that was made for a call which came without one."""
    report.add(f"{place}/id", "id of a tool call", "a call and its result must share an id", "identity")


def _write_choice(choice: Choice, message: "_Message", report: Report, *, own: bool) -> JsonObject:
    lose_finish(choice, report, own=own)
    document: JsonObject = {
        "index": message.index,
        "message": message.write(choice.parts),
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
    def __init__(self, report: Report, index: int, reply_id: str) -> None:
        self.index = index
        self._report = report
        self._reply_id = reply_id
        self._ids = CallIds(index)
        self._order = Order(report)
        self._texts: list[str] = []
        self._thoughts: list[Thinking] = []
        self._calls: list[Json] = []
        self._annotations: list[Json] = []
        self._beside: JsonObject = {}

    def write(self, parts: tuple[Part, ...]) -> JsonObject:
        for number, part in enumerate(parts):
            match part:
                case Thinking() if thinking_words(part):
                    self._order.note(THOUGHT, number, part.at)
                case Text(text) | Refusal(text) if text:
                    self._order.note(WORDS, number, part.at)
                case ToolCall():
                    self._order.note(CALL, number, part.at)
                case _:
                    pass
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
                number = len(self._calls)
                if not part.id:
                    note_call_id(f"/choices/{self.index}/message/tool_calls/{number}", self._report)
                self._calls.append(write_call(part, self._ids.of(part.id, number, self._reply_id), self._report))
            case Audio():
                self._beside["audio"] = write_audio(part)
            case Opaque(dialect="openai-chat", value=value) if "/tool_calls/" in part.at:
                self._calls.append(value)
            case _:
                self._report.lose(part.at, describe(part), f"a {NAME} reply has none", "content")

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


def write_call(call: ToolCall, call_id: str, report: Report) -> JsonObject:
    """An entry of `tool_calls`."""
    kind, words = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
    document: JsonObject = {
        "id": call_id,
        "type": kind,
        kind: {"name": flat_name(call.name, call.namespace), words: call.arguments},
    }
    if call.item is not None:
        report.lose(call.at, "id of an item", f"{NAME} calls have one id", "identity")
    if call.signature is not None:
        if call.signed_by == GEMINI:
            document["extra_content"] = {"google": {"thought_signature": call.signature}}
        else:
            report.lose(call.at, "signature", f"{NAME} has no field for it", "identity")
    return document


def write_thinking(thoughts: list[Thinking], report: Report) -> JsonObject:
    """The fields for reasoning: one text, and its seal."""
    texts = [words for part in thoughts if (words := thinking_words(part))]
    for part in thoughts:
        if part.summary and thinking_words(part) != part.summary[0]:
            lose_pieces(part.at, report)
    return compact({"reasoning_content": "\n\n".join(texts) or None, **write_seal(thoughts, report)})


def thinking_words(part: Thinking) -> str:
    """The words of some reasoning as one text: its summary, and the reasoning itself where that says something else."""
    summary = "\n\n".join(part.summary)
    return part.text if summary in ("", part.text) else f"{summary}\n\n{part.text}"


def lose_pieces(at: str, report: Report) -> None:
    """Report that reasoning in several pieces becomes one text."""
    report.lose(at, "pieces of the reasoning summary", f"{NAME} has one text for it", "identity")


def write_seal(thoughts: list[Thinking], report: Report) -> JsonObject:
    """The fields for the seal of the reasoning, another dialect's wrapped so that the client can bring it back.

    A seal is only good for the text that it was made for, so where several texts become one it is lost, and with it
    all of a block that is nothing but a seal.
    """
    if len(thoughts) == 1 and (maker := thoughts[0].signed_by) is not None:
        signature, item = thoughts[0].signature, thoughts[0].id
        if maker == NAME:
            return compact({SEAL: signature, SEAL_ID: item})
        return {SEAL: wrap(signature, maker, REDACTED if _is_withheld(thoughts[0]) else item)}
    for part in thoughts:
        if _is_withheld(part):
            report.lose(part.at, "redacted reasoning", f"{NAME} has a field for one block only", "content")
        elif part.signature is not None or part.id is not None:
            report.lose(part.at, "signature of the reasoning", f"{NAME} has a field for one only", "identity")
    return {}


def _is_withheld(part: Thinking) -> bool:
    return part.redacted and not thinking_words(part)


def write_audio(part: Audio) -> JsonObject:
    """Spoken output."""
    data = part.source.data if isinstance(part.source, Inline) else None
    return compact({"id": part.id, "data": data, "transcript": part.transcript, **part.extras})
