"""Writes a Chat Completions request: messages, with results as `tool` messages and calls beside the text."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from sightline.dialects.conversation import as_turns, with_answers, with_ids, with_policy
from sightline.dialects.dialect import Target
from sightline.dialects.fields import compact, merge
from sightline.dialects.losses import thinking_words
from sightline.dialects.openai_chat.content import MEDIA, ContentWriter, is_media
from sightline.dialects.openai_chat.names import GEMINI, NAME, SIGNATURE, SIGNATURE_ID, THINKING_TEXT
from sightline.dialects.openai_chat.settings import (
    MOST_STOPS,
    READ_TABLE,
    RENAMED,
    TABLE,
    write_format,
    write_parallel,
    write_reasoning,
    write_tool_choice,
    write_tools,
)
from sightline.dialects.option_table import OF_CHAT, fit_openai_ids, fit_stops, fit_tier, set_path, write_options
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, CacheBreakpoint, Opaque, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Options, Request, Role
from sightline.wire.jsontext import encode


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body of this request in this dialect."""
    same = request.dialect == NAME
    messages = with_policy(request.messages, target.system, report)
    if not same:
        for message in messages:
            if message.id is not None:
                report.lose(message.at, "id of an item", f"{NAME} messages have no ids", "identity")
        messages = with_answers(as_turns(with_ids(messages, report)), report, NAME)
    document: JsonObject = {"model": request.model} if request.model else {}
    document["messages"] = _MessageWriter(target, report, request.dialect).write(messages)
    write_tools(request, document, report, same=same)
    write_tool_choice(request, document, report, same=same)
    write_parallel(request, document, report, same=same)
    options = request.options if same else _fit_options(request.options, report)
    if options.format is not None:
        document["response_format"] = write_format(options.format, report, same=same)
    effort = write_reasoning(options, report)
    if effort is not None:
        document["reasoning_effort"] = effort
    if not target.quirks.stream_usage:
        # The provider refuses requests that ask for usage.
        if options.include_usage is not None:
            place = options.place("include_usage")
            report.lose(place, "usage requested", "the provider has no such option", "identity")
        options = replace(options, include_usage=None)
    table = READ_TABLE if same else TABLE
    write_options(options, table, document, report, dialect=NAME, same=same)
    if same:
        document = merge(document, request.extras)
    _rename_fields(document, target, report, same=same)
    if same:
        return document
    if options.stream and options.include_usage is None and target.quirks.stream_usage:
        set_path(document, ("stream_options", "include_usage"), True)
        why = f"a stream of {request.dialect or 'the client'} tells its usage, one of {NAME} only if it is asked to"
        report.add("/stream_options/include_usage", "usage requested", why)
    return document


def _rename_fields(document: JsonObject, target: Target, report: Report, *, same: bool) -> None:
    """Give fields the provider's names for them. A provider of the usual name takes the others too; for any other one,
    a field that a request has by two names with different values is kept once."""
    for quirk, names in RENAMED.items():
        name = getattr(target.quirks, quirk)
        for other in names if name != names[0] else ():
            if other == name or (value := document.pop(other, None)) is None:
                continue
            if document.setdefault(name, value) != value:
                report.lose(f"/{other}", other, f"the provider reads {name}", "option")
            elif same:
                report.add(f"/{name}", f"another name for {other}", "the provider knows this one", "identity")


def _fit_options(options: Options, report: Report) -> Options:
    """Another dialect's options, fitted to what the API takes."""
    options = fit_openai_ids(fit_stops(options, MOST_STOPS, report, NAME), report, NAME)
    return fit_tier(options, OF_CHAT, report, NAME)


@dataclass(slots=True)
class _Assistant:
    """An assistant message while its parts are collected."""

    content: list[Part] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    beside: JsonObject = field(default_factory=dict)


class _MessageWriter:
    def __init__(self, target: Target, report: Report, source: str) -> None:
        self._target = target
        self._report = report
        self._same = source == NAME
        self._content = ContentWriter(report, source)
        self._out: list[Json] = []
        self._media: list[Json] = []

    def write(self, messages: tuple[Message, ...]) -> list[Json]:
        for message in messages:
            self._write(message)
        self._flush_media()
        return self._out

    def _write(self, message: Message) -> None:
        others = self._write_results(message)
        if others is None:
            return
        write = self._assistant if message.role == "assistant" else self._words
        document = write(message, others)
        if document is None:
            # A message of which nothing is left is not written; an item that was lost as a whole was reported as such.
            if not any(
                isinstance(part, ToolResult) or (part.at == message.at and part != Thinking(at=part.at))
                for part in message.parts
            ):
                self._report.lose(message.at, "message", "there is nothing in it that can be said", "identity")
            return
        self._flush_media()
        if message.name is not None:
            document["name"] = message.name
        self._out.append(merge(document, message.extras) if self._same else document)

    def _write_results(self, message: Message) -> tuple[Part, ...] | None:
        """Write the tool results of a message. Returns its other parts, or None if there are none."""
        if ToolResult not in map(type, message.parts):
            return message.parts
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._write_result(part, message)
                if any(isinstance(other, Text) for other in others):
                    self._report.lose(part.at, "order of words and results", f"{NAME} holds results first", "content")
            else:
                others.append(part)
        if all(isinstance(part, CacheBreakpoint) for part in others):
            self._content.parts(tuple(others))
            return None
        return tuple(others)

    def _words(self, message: Message, parts: tuple[Part, ...]) -> JsonObject | None:
        role: Role = "user" if message.role == "tool" else message.role
        content = self._content.write(parts, bare=message.bare, words_only=role != "user")
        if content is None and not self._same:
            return None
        if role == "developer" and not self._target.quirks.developer_role:
            role = "system"
            place = f"/messages/{len(self._out) + bool(self._media)}/role"
            self._report.add(place, "role system for developer", "the provider knows only this one", "identity")
        if message.role == "tool":
            self._report.lose(message.at, "role", f"{NAME} has only results in its tool messages", "content")
        return {"role": role, "content": content}

    def _assistant(self, message: Message, parts: tuple[Part, ...]) -> JsonObject | None:
        draft = _Assistant()
        for part in parts:
            self._gather(part, draft)
        content = self._content.write(tuple(draft.content), bare=message.bare, words_only=True)
        if content is None and not (self._same or draft.calls or draft.beside):
            return None
        document: JsonObject = {"role": "assistant", "content": content, **draft.beside}
        if draft.calls:
            document["tool_calls"] = draft.calls
        return document

    def _gather(self, part: Part, draft: _Assistant) -> None:
        match part:
            case ToolCall():
                self._gather_call(part, draft)
            case Thinking():
                self._gather_thinking(part, draft)
            case Opaque(dialect="openai-chat", value=value) if "/tool_calls/" in part.at:
                draft.calls.append(value)
            case Opaque(dialect="openai-chat", value=dict(value)) if part.at.endswith(THINKING_TEXT):
                draft.beside |= value
            case Refusal(text) if part.at.endswith("/refusal") or not self._same:
                draft.beside["refusal"] = f"{draft.beside.get('refusal', '')}{text}"
            case Audio(id=str(audio_id)) if self._same:
                draft.beside["audio"] = {"id": audio_id, **part.extras}
            case _:
                if draft.calls and not isinstance(part, CacheBreakpoint):
                    self._report.lose(
                        part.at, "order of words and calls", f"{NAME} holds the words before the calls", "content"
                    )
                draft.content.append(part)

    def _gather_call(self, call: ToolCall, draft: _Assistant) -> None:
        if self._same and call.at.endswith("/function_call"):
            draft.beside["function_call"] = {"name": call.name, "arguments": call.arguments, **call.extras}
            return
        kind, words = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
        inner: JsonObject = {"name": call.name, words: call.arguments}
        if not call.arguments and kind == "function" and not self._same:
            inner[words] = "{}"
        document: JsonObject = {"id": call.id, "type": kind, kind: inner}
        if self._same:
            merge(document, call.extras)
        if call.signature is not None:
            if call.signed_by == GEMINI and (self._same or self._target.quirks.call_seals):
                document["extra_content"] = {"google": {"thought_signature": call.signature}}
            else:
                self._content.lose_signature(call)
        if call.item is not None:
            self._report.lose(call.at, "id of an item", f"{NAME} calls have one id", "identity")
        draft.calls.append(document)

    def _gather_thinking(self, part: Thinking, draft: _Assistant) -> None:
        fields = compact({SIGNATURE: part.signature, SIGNATURE_ID: part.id})
        if part.signed_by == NAME and draft.beside.keys().isdisjoint(fields):
            draft.beside |= fields
        else:
            self._content.lose_signature(part)
        place = part.at.rpartition("/")[2]
        is_own = self._same and place in THINKING_TEXT
        key = place if is_own else self._target.quirks.thinking_field
        words = thinking_words(part)
        if not words and not is_own:
            return
        if not key:
            why = f"{NAME} has no field for it unless the provider names one"
            self._report.lose(part.at, "reasoning", why, "content")
            return
        if draft.content or draft.calls:
            self._report.lose(part.at, "order of reasoning and words", f"{NAME} holds reasoning first", "content")
        before = draft.beside.get(key)
        draft.beside[key] = f"{before}\n\n{words}" if isinstance(before, str) else words

    def _write_result(self, result: ToolResult, message: Message) -> None:
        document: JsonObject = {"role": "tool", "tool_call_id": result.id}
        if self._same and not result.id and message.extras.get("tool_call_id") is None:
            document = {"role": "function"}
        if result.name is not None:
            if self._same:
                document["name"] = result.name
            else:
                self._report.lose(result.at, "name of the tool in its result", "the call's id says it", "identity")
        words = result.parts if self._same else self._without_media(result.parts)
        if result.structured is not None:
            words = (*words, Text(encode(dict(result.structured)).decode(), at=result.at))
        content = self._content.write(words, bare=result.bare)
        document["content"] = "" if content is None and not self._same else content
        if result.is_error:
            self._report.lose(result.at, "error flag of a tool result", f"{NAME} has none", "option")
        if result.item is not None:
            self._report.lose(result.at, "id of an item", f"{NAME} results have one id", "identity")
        self._out.append(merge(document, message.extras) if self._same else document)

    def _without_media(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Tool messages take only text, so their media are sent in a user message after them."""
        if MEDIA.isdisjoint(map(type, parts)):
            return parts
        why = "it is in a user message behind the result"
        for part in parts:
            if is_media(part):
                what = f"place of {part.__class__.__name__.lower()} in a tool result"
                self._report.lose(part.at, what, why, "identity")
                self._media.extend(self._content.parts((part,)))
        return tuple(part for part in parts if not is_media(part))

    def _flush_media(self) -> None:
        if self._media:
            self._report.add(
                f"/messages/{len(self._out)}", "user message", "it holds pictures and files of tool results", "identity"
            )
            self._out.append({"role": "user", "content": self._media})
            self._media = []
