"""Writing a raw request: results as messages of their own, calls beside the content, everything else within it."""

from collections.abc import Iterator

import msgspec

from sightline.dialects.conversation import as_turns, with_answers, with_ids, with_policy
from sightline.dialects.dialect import Target
from sightline.dialects.fields import merge
from sightline.dialects.raw.carrier import carry_result
from sightline.dialects.raw.content import ContentWriter
from sightline.dialects.raw.names import NAME, OPTIONS, ROLE_NUMBERS
from sightline.dialects.raw.options import write_settings
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message, Role
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body that asks for the same; a bare list of messages stays one while it has nothing else to say."""
    same = request.dialect == NAME
    for message in request.messages:  # reported before items are joined into turns
        if message.id is not None:
            report.lose(message.at, "id of an item", f"{NAME} messages have no ids", "identity")
    messages = with_policy(request.messages, target.system, report)
    if not same:
        messages = with_answers(_turns(with_ids(messages, report)), report, NAME)
    written = _MessageWriter(report, same=same).write(messages)
    document: JsonObject = {"model": request.model} if request.model else {}
    document["messages"] = written
    settings = write_settings(request, report, same=same)
    if settings:
        document[OPTIONS] = settings
    if same:
        merge(document, request.extras)
        if document.keys() == {"messages"} and _was_list(request):
            return written
    return document


def _turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages as turns; an item that only its dialect knows stays a message, so that it can be an item again."""
    turns: list[Message] = []
    joining: list[Message] = []
    for message in messages:
        if len(message.parts) == 1 and isinstance(part := message.parts[0], Opaque) and part.at == message.at:
            turns += [*as_turns(tuple(joining)), message]
            joining = []
        else:
            joining.append(message)
    return (*turns, *as_turns(tuple(joining)))


def _was_list(request: Request) -> bool:
    """Whether the messages stood at the root, where a pointer begins with a number."""
    return bool(request.messages) and request.messages[0].at[1:2].isdigit()


class _MessageWriter:
    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same
        self._content = ContentWriter(report, same=same)

    def write(self, messages: tuple[Message, ...]) -> list[Json]:
        return [document for message in messages for document in self._message(message)]

    def _message(self, message: Message) -> Iterator[JsonObject]:
        """A message, in several where it holds results: the schema has one message for each."""
        if message.role == "developer":
            why = f"{NAME} has one role for instructions, system"
            self._report.lose(message.at, "developer role", why, "identity")
        if message.role == "assistant":
            yield self._assistant(message)
            return
        results, others = self._split_results(message.parts)
        yield from (self._result(result, message) for result in results)
        if others or not results:
            yield self._plain(message, tuple(others))

    def _split_results(self, parts: tuple[Part, ...]) -> tuple[list[ToolResult], list[Part]]:
        """The results, each with the cache mark behind it, and the rest: results come first."""
        results: list[ToolResult] = []
        others: list[Part] = []
        is_behind_result = False
        for part in parts:
            if isinstance(part, ToolResult):
                if others:
                    self._report.lose(
                        part.at, "place of a tool result", f"{NAME} holds results before other words", "content"
                    )
                results.append(part)
            elif is_behind_result and isinstance(part, CacheBreakpoint):
                marked = results[-1]
                results[-1] = msgspec.structs.replace(marked, parts=(*marked.parts, part), bare=False)
            else:
                others.append(part)
            is_behind_result = bool(results) and not others
        return results, others

    def _plain(self, message: Message, parts: tuple[Part, ...]) -> JsonObject:
        role: Role = "user" if message.role == "tool" else message.role
        document: JsonObject = {"role": ROLE_NUMBERS[role], "content": self._write_content(parts, bare=message.bare)}
        return self._finish(document, message.name, message)

    def _assistant(self, message: Message) -> JsonObject:
        content: list[Part] = []
        calls: list[Json] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls.append(self._content.call(part, part.id))
            elif self._same and isinstance(part, Opaque) and "/toolCalls/" in part.at:
                calls.append(part.value)
            else:
                if calls:
                    self._lose_order(part)
                content.append(part)
        document: JsonObject = {"role": ROLE_NUMBERS["assistant"]}
        document["content"] = self._write_content(tuple(content), bare=message.bare)
        if calls:
            document["toolCalls"] = calls
        return self._finish(document, message.name, message)

    def _lose_order(self, part: Part) -> None:
        is_mark = isinstance(part, CacheBreakpoint)
        what = "place of a cache mark" if is_mark else "order of words and calls"
        self._report.lose(part.at, what, f"{NAME} holds calls behind the content", "option" if is_mark else "content")

    def _result(self, result: ToolResult, message: Message) -> JsonObject:
        beyond = carry_result(result)
        if beyond is None:
            content = self._write_content(result.parts, bare=result.bare)
        else:
            content = [*self._content.parts(result.parts), beyond]
        document: JsonObject = {"role": ROLE_NUMBERS["tool"], "toolCallId": result.id, "content": content}
        return self._finish(document, result.name, message)

    def _write_content(self, parts: tuple[Part, ...], *, bare: bool) -> Json:
        if self._same and bare and len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        return self._content.parts(parts)

    def _finish(self, document: JsonObject, name: str | None, message: Message) -> JsonObject:
        if name is not None:
            document["name"] = name
        return merge(document, message.extras) if self._same else document
