"""Losses that are found without knowing either dialect: the fields of a source that are not modelled."""

import re
from itertools import chain
from operator import attrgetter
from typing import assert_never

from sightline.dialects.dialect import Dialect, Unread
from sightline.dialects.tool_names import BUILT_IN
from sightline.model.events import CitationReceived, FieldReceived, Finished, PartReceived, StreamEvent, ToolCallBegun
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, Thinking, ToolResult
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.report import Report, Severity
from sightline.model.request import Message, OpaqueTool, Request, parts_of
from sightline.wire.pointer import join


class UnreadLosses:
    """Reports the fields that only their own dialect knows; `unread` is what that dialect knows about them."""

    def __init__(self, unread: Unread, target: str, report: Report) -> None:
        self._unread = unread
        self._why = f"{target} has no such field"
        self._target = target
        self._report = report

    def of_request(self, request: Request) -> None:
        """Report all such fields of a request."""
        extras = dict(request.extras)
        for key in extras.keys() & self._unread.stateful:
            del extras[key]
            why = "the conversation so far is with the provider alone"
            self._report.lose(join(request.at, key), key, why, "content")
        self._lose(request.at, extras, "option")
        if _may_have_extras(request.messages):
            for message in request.messages:
                if message.extras:
                    self._lose(message.at, message.extras, "content")
                self._lose_in_parts(message.parts)
        options = request.options
        tools = [each for tool in request.tools for each in (tool, tool.cache)]
        for value in (*tools, request.tool_choice, options.format, options.reasoning):
            if value is not None:
                self._lose(value.at, value.extras, "option")

    def of_reply(self, reply: Reply) -> None:
        """Report all such fields of a reply."""
        for choice in reply.choices:
            self._lose_in_parts(choice.parts)
        for field in reply.unmodelled:
            self.of_field(field.at, field.value)
        if reply.usage is not None:
            lose_counts(reply.usage, self._target, self._report)

    def of_event(self, event: FieldReceived | PartReceived | CitationReceived) -> None:
        """Report such fields of an event of a stream."""
        match event:
            case FieldReceived(at, value):
                self.of_field(at, value)
            case PartReceived(value=part):
                self._lose_in_parts((part,))
            case CitationReceived(citation=citation):
                self._lose(citation.at, citation.extras, "content")
            case unreachable:
                assert_never(unreachable)

    def of_field(self, at: str, value: Json) -> None:
        """Report one field of a reply."""
        if value is None or value in ([], {}, ""):
            return
        key = at.rpartition("/")[2]
        is_known = key in self._unread.bookkeeping or key in self._unread.echoes
        self._report.lose(at, key, self._why, "identity" if is_known else "content")

    def _lose_in_parts(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            if part.extras:
                self._lose(part.at, part.extras, "option" if isinstance(part, CacheBreakpoint) else "content")
            if type(part) is ToolResult:
                self._lose_in_parts(part.parts)
            elif type(part) is Text and part.citations:
                for citation in part.citations:
                    self._lose(citation.at, citation.extras, "content")

    def _lose(self, at: str, extras: JsonObject, severity: Severity) -> None:
        for key, value in extras.items():
            if value is None:  # a null means the same as absence
                continue
            if isinstance(value, dict) and key in self._unread.containers:
                self._lose(join(at, key), value, severity)
            else:
                says_nothing = key in self._unread.bookkeeping or value in ([], "")
                self._report.lose(join(at, key), key, self._why, "identity" if says_nothing else severity)


_EXTRAS = attrgetter("extras")


def _may_have_extras(messages: tuple[Message, ...]) -> bool:
    """Whether any message, its parts or the parts of its results has a field that is not modelled. Most have none, and
    checking that in C takes a tenth of the time."""
    parts = parts_of(messages)
    inner = list(chain.from_iterable([part.parts for part in parts if type(part) is ToolResult]))
    cited = [part for part in chain(parts, inner) if type(part) is Text and part.citations]
    if cited or ToolResult in map(type, inner):
        return True
    return any(map(_EXTRAS, messages)) or any(map(_EXTRAS, parts)) or any(map(_EXTRAS, inner))


def describe(value: Part | OpaqueTool) -> str:
    """A few words that describe a part or a tool; if only its own dialect knows it, its type there."""
    if not isinstance(value, (Opaque, OpaqueTool)):
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(value).__name__).lower()
    noun = "part" if isinstance(value, Opaque) else "tool"
    holder = value.value if isinstance(value.value, dict) else {}
    # Gemini names the kind of a part or a tool by its only key.
    kind = holder.get("type") or next((key for key in holder if key not in ("thought", "thoughtSignature")), None)
    return f"{noun} {kind!r} of {value.dialect}" if isinstance(kind, str) else f"opaque {noun} of {value.dialect}"


def lose_unknown(part: Opaque, target: str, report: Report) -> None:
    """Report a part that only its own dialect knows, unless its content is elsewhere too."""
    if not part.mirrored:
        report.lose(part.at, describe(part), f"{target} does not know it", "content")


def lose_call_kind(event: StreamEvent, target: Dialect, report: Report) -> None:
    """Report a call of a built-in tool, which becomes a function call in dialects that do not distinguish them."""
    if isinstance(event, ToolCallBegun) and event.kind in BUILT_IN and not target.keeps_kinds:
        why = f"{target.name} has no such tool; the call is one of a function"
        report.lose(event.at, f"that {event.name!r} is a built-in tool", why, "identity")


def thinking_words(part: Thinking) -> str:
    """The text of some reasoning: its summary, and the reasoning itself if that differs."""
    summary = "\n\n".join(part.summary)
    return part.text if summary in ("", part.text) else f"{summary}\n\n{part.text}"


def lose_pieces(at: str, target: str, report: Report) -> None:
    """Report that reasoning in several pieces becomes one text."""
    report.lose(at, "pieces of the reasoning summary", f"{target} has one text for it", "identity")


def lose_finish(finished: Finished, target: str, report: Report) -> None:
    """Report what is lost in a dialect that has no pause and only coarse finish words."""
    if finished.finish == "pause":
        report.lose(finished.at, "pause of the turn", f"{target} knows no pause", "option")
    if finished.stop_sequence is not None:
        place = finished.stop_at or finished.at
        report.lose(place, "the text that stopped it", f"{target} does not say which it was", "identity")
    if finished.detail is not None:
        report.lose(finished.at, f"finish {finished.detail!r}", f"{target} has a coarser word", "identity")


def lose_choices(reply: Reply, target: str, report: Report) -> None:
    """Report the choices after the first, for a dialect that has only one in a reply."""
    for choice in reply.choices[1:]:
        report.lose(_place(choice), "another choice", f"{target} has one choice in a reply", "content")


def lose_partial(reply: Reply, target: str, report: Report) -> None:
    """Report what had arrived of a failed reply, for a dialect whose error body holds only the error."""
    why = f"an error of {target} holds nothing else"
    for name, place in reply.places.items():
        report.lose(place, name, why, "identity")
    for choice in reply.choices:
        for part in choice.parts:
            report.lose(part.at, "what had arrived", why, "content")
        if choice.finish_at:
            report.lose(_place(choice), "what had arrived", why, "content")
    if reply.usage is not None:
        report.lose(reply.usage.at, "token counts", why, "identity")


def _place(choice: Choice) -> str:
    """The place of a choice, which is that of its finish."""
    return choice.finish_at.rpartition("/")[0]


def lose_counts(usage: Usage, target: str, report: Report) -> None:
    """Report the detailed counts of a provider."""
    for key, value in usage.extras.items():
        for name in value if isinstance(value, dict) else ("",):
            place = join(usage.at, key, name) if name else join(usage.at, key)
            report.lose(place, name or key, f"{target} has no such count", "identity")
