"""Exchanges as Markdown: what was asked, which tools were called, and what was answered."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.page import cost_words, pretty
from sightline.model.parts import CacheBreakpoint, Part, Refusal, Text, Thinking, ToolCall, ToolResult

_FENCES = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def markdown(exchanges: Sequence[RecordedExchange]) -> bytes:
    """These exchanges, one below the other."""
    return "\n\n".join(map(_exchange, exchanges)).encode("utf-8", "replace") + b"\n"


def _exchange(recorded: RecordedExchange) -> str:
    summary = recorded.summary
    when, about = datetime.fromtimestamp(summary.at, UTC), "~" if summary.is_estimated else ""
    facts = [
        f"{when:%Y-%m-%d %H:%M:%S} UTC",
        summary.model + (f" → {summary.provider}" if summary.provider else ""),
        summary.session and f"session {summary.session}",
        " ".join(filter(None, (summary.state, str(summary.status or ""), summary.finish, summary.fault))),
        ""
        if summary.input_tokens is None
        else f"{about}{summary.input_tokens:,} → {about}{summary.output_tokens or 0:,} tokens",
        cost_words(summary),
        recorded.id,
    ]
    lines = [f"# {_one_line(summary.title) or recorded.id}", " · ".join(filter(None, facts)), *_request(recorded)]
    return "\n\n".join([*lines, *_reply(recorded)])


def _request(recorded: RecordedExchange) -> list[str]:
    try:
        request = recorded.request()
    except Fault as fault:
        return ["## Request", f"It cannot be read: {fault.message}", fence(recorded.sent.decode("utf-8", "replace"))]
    found = [piece for message in request.messages for piece in (f"## {message.role}", *_parts(message.parts))]
    if request.tools:
        tools = [str(getattr(tool, "name", "a tool of the provider's")) for tool in request.tools]
        found.append(f"Tools: {', '.join(f'`{name}`' for name in tools)}")
    return found


def _reply(recorded: RecordedExchange) -> list[str]:
    reply = recorded.reply()
    found = []
    for choice in reply.choices:
        if choice.parts or choice.finish:
            found += [f"## reply{f' ({choice.finish})' if choice.finish else ''}", *_parts(choice.parts)]
    if reply.fault is not None:
        found.append(f"**{reply.fault.code}**: {reply.fault.message}")
    return found


def _parts(parts: Iterable[Part]) -> list[str]:
    return [text for text in map(_part, parts) if text]


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Refusal(text=text):
            return f"*refused:* {text}"
        case Thinking(text=text):
            return "\n".join(f"> {line}" for line in text.splitlines())
        case ToolCall(name=name, arguments=arguments):
            return f"**calls `{name}`**\n\n{fence(str(arguments))}"
        case ToolResult(parts=parts, structured=structured, is_error=is_error):
            said = "\n\n".join(_parts(parts)) or (pretty(structured) if structured is not None else "")
            return f"**{'error' if is_error else 'result'}**\n\n{fence(said)}"
        case CacheBreakpoint():
            return ""
        case _:
            kind = type(part).__name__.lower()
            return f"*{kind}*" if kind != "opaque" else fence(pretty(msgspec.to_builtins(part)))


def fence(text: str) -> str:
    """Text as it is, in a fence that it cannot end."""
    longest = max((len(each) for each in _FENCES.findall(text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{text}\n{marks}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
