"""An exchange as one self-contained page to share: no scripts, nothing fetched, and all contents escaped as text."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from typing import assert_never

import msgspec

from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.model.exchange import Budgeted, FrameArrived
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import CustomTool, FunctionTool, Message, OpaqueTool, Tool
from sightline.store.entries import FactEntry
from sightline.store.summary import Summary
from sightline.wire.jsontext import decode

_LONG = 3000
"""Texts with more characters are collapsed."""
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s_-]*")


def message_html(message: Message) -> str:
    role = escape(message.role)
    name = f" · {escape(message.name)}" if message.name else ""
    return f'<article class="{role}"><h3>{role}{name}</h3>{parts_html(message.parts)}</article>'


def parts_html(parts: Iterable[Part]) -> str:
    """HTML of parts, one below the other."""
    return "".join(map(_part, parts))


def tool_html(tool: Tool) -> str:
    """HTML of a tool that the model may call."""
    match tool:
        case FunctionTool(name=name, description=description, schema=schema):
            return details_of(name, words(description or "") + block(pretty(schema or {})))
        case CustomTool(name=name, description=description, grammar=grammar):
            return details_of(name, words(description or "") + (block(grammar.definition) if grammar else ""))
        case OpaqueTool(value=value):
            return details_of("a tool of the provider's", block(pretty(value)))
        case unreachable:
            assert_never(unreachable)


def words(text: str) -> str:
    """Prose of a user or a model; long texts are collapsed."""
    shown = f'<div class="words">{escape(text)}</div>'
    if len(text) <= _LONG:
        return shown if text else ""
    return details_of(f"{' '.join(text[:120].split())} … ({len(text):,} characters)", shown)


def block(text: str) -> str:
    """Preformatted text."""
    return f'<pre class="code">{escape(text)}</pre>'


def details_of(title: str, inner: str) -> str:
    """A collapsed element with a title."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def pretty(value: Json) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return words(text)
        case Refusal(text=text):
            return f'<p class="bad">refused</p>{words(text)}'
        case Thinking(text=text, redacted=redacted):
            return details_of("thinking", words(text) or f'<p class="soft">{"withheld" if redacted else "signed"}</p>')
        case ToolCall(name=name, arguments=arguments, id=call):
            return f"<h3>calls {escape(name)}{_call_label(call)}</h3>{block(_arguments(arguments))}"
        case ToolResult(parts=parts, structured=structured, id=call, is_error=is_error):
            content = parts_html(parts) + (block(pretty(structured)) if structured is not None else "")
            return f"<h3>{'error' if is_error else 'result'}{_call_label(call)}</h3>{content}"
        case Image(source=source):
            return _picture(source)
        case Document(source=source, title=title):
            return _file("document", title or "", source)
        case Audio(source=source, transcript=transcript):
            return _file("sound", "", source) + words(transcript or "")
        case Opaque(value=value):
            return block(pretty(value))
        case CacheBreakpoint():
            return '<p class="soft">cached up to here</p>'
        case unreachable:
            assert_never(unreachable)


def _call_label(call: str) -> str:
    return f' <span class="soft">{escape(call)}</span>' if call else ""


def _arguments(text: str) -> str:
    try:
        return pretty(decode(text))
    except Fault:
        return text


def _picture(source: Source) -> str:
    match source:
        case Inline(media_type=kind, data=data) if kind in _PICTURES and _BASE64.fullmatch(data):
            return f'<p><img alt="a picture of the request" src="data:{kind};base64,{escape(data)}"></p>'
        case _:
            return _file("picture", "", source)


def _file(what: str, title: str, source: Source | None) -> str:
    match source:
        case None:
            label, inner = "kept by the provider", ""
        case Inline(media_type=kind, data=data):
            label, inner = f"{kind}, {len(data) * 3 // 4:,} bytes", ""
        case Link(url=url):
            label, inner = url, ""
        case FileId(id=name):
            label, inner = name, ""
        case PlainText(text=text, media_type=kind):
            label, inner = kind, words(text)
        case unreachable:
            assert_never(unreachable)
    named = " · ".join(filter(None, (what, title, label)))
    return f'<p class="soft">{escape(named)}</p>{inner}'


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --line: #dfe2e6; --ground: #f6f7f9; --card: #fff;
  --mark: #0b68cb; --good: #18794e; --bad: #c62a2f; --code: #f0f2f5; }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #a3a8b0; --line: #2e3238; --ground: #111316;
  --card: #191c20; --mark: #70b8ff; --good: #4cc38a; --bad: #ff9592; --code: #22262b; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 4rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
h3 { font-size: .8rem; margin: 0 0 .4rem; color: var(--soft); font-weight: 600; letter-spacing: .02em; }
p { margin: .2rem 0; } .soft { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; margin: .8rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem;
  margin: 0 0 .6rem; border-left: 3px solid var(--line); }
article.user { border-left-color: var(--mark); } article.assistant { border-left-color: var(--good); }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: .88rem/1.5 ui-monospace, monospace; }
.words { white-space: pre-wrap; overflow-wrap: anywhere; }
.code { background: var(--code); border-radius: .35rem; padding: .5rem .7rem; margin: .4rem 0; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--soft); }
summary:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
img { max-width: 100%; border-radius: .35rem; }
table { border-collapse: collapse; width: 100%; background: var(--card); border: 1px solid var(--line); }
th, td { text-align: left; padding: .35rem .7rem; border-top: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
:is(th, td):not(:last-child) { overflow-wrap: break-word; } th { color: var(--soft); font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); }
.scroll { overflow-x: auto; }
@media print { details > * { display: block; } }
"""


def page(*exchanges: RecordedExchange) -> bytes:
    """The whole page: the request, the tools and options, the reply, the usage, and what translations lost. If there
    are several exchanges, each is collapsed under its title."""
    titles = [recorded.summary.title or recorded.id for recorded in exchanges]
    bodies = [_body(recorded, title) for recorded, title in zip(exchanges, titles, strict=True)]
    title = titles[0] if len(titles) == 1 else f"{len(titles)} exchanges"
    many = (details_of(name, body) for name, body in zip(titles, bodies, strict=True))
    body = bodies[0] if len(bodies) == 1 else f"<header><h1>{escape(title)}</h1></header>\n{''.join(many)}"
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="referrer" content="no-referrer"><title>{escape(title)} · Sightline</title>
<style>{_STYLE}</style></head>
<body><main>
{body}</main></body></html>
"""
    return html.encode("utf-8", "replace")


def _body(recorded: RecordedExchange, title: str) -> str:
    sections = (_head(recorded, title), _request(recorded), _reply(recorded), _losses(recorded), _facts(recorded))
    return "".join(sections)


def _head(recorded: RecordedExchange, title: str) -> str:
    summary = recorded.summary
    when = datetime.fromtimestamp(summary.at, UTC)
    outcome = " ".join(filter(None, (summary.state, str(summary.status or ""), summary.finish, summary.fault)))
    usage = recorded.usage
    rows_by_name = {
        "exchange": recorded.id,
        "when": f"{when:%Y-%m-%d %H:%M:%S} UTC",
        "request": f"{summary.method} {summary.path}" if recorded.is_raw else "",
        "model": summary.model + (f" → {recorded.model}" if recorded.model != summary.model else ""),
        "provider": summary.provider,
        "dialect": summary.dialect + (f" → {recorded.spoken}" if recorded.spoken != summary.dialect else ""),
        "client": summary.client,
        "session": summary.session,
        "origin": summary.origin,
        "tokens": "" if usage is None else _counts(msgspec.to_builtins(usage)),
        "cost": cost_words(summary),
        "time": _times(recorded),
        "attempts": str(summary.attempts) if summary.attempts > 1 else "",
        "note": summary.message,
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows_by_name.items() if value)
    kind = "good" if summary.state == "finished" and summary.status < 400 else "bad"
    return f'<header><h1>{escape(title)}</h1><p class="{kind}">{escape(outcome)}</p><dl>{rows}</dl></header>\n'


def cost_words(summary: Summary) -> str:
    """The cost in words. "unknown" without a known price; empty for an exchange that took no tokens or was not sent."""
    if summary.cost is None:
        is_unknown = summary.input_tokens or (summary.state == "finished" and summary.provider)
        return "unknown" if is_unknown else ""
    about = "~" if summary.is_estimated else ""
    return f"{about}${summary.cost:.6f}" if summary.cost else "free"


def _counts(usage: JsonObject) -> str:
    names = ("input", "output", "cached", "cache_write", "reasoning")
    counted = [(name, usage.get(f"{name}_tokens")) for name in names]
    shown = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counted if isinstance(count, int))
    return f"{shown} (estimated)" if usage.get("is_estimated") else shown


def _times(recorded: RecordedExchange) -> str:
    summary = recorded.summary
    if summary.elapsed is None:
        return ""
    first = f", first byte after {summary.first_byte:.2f} s" if summary.first_byte else ""
    frames = f", in {_pieces(recorded)}" if recorded.frames else ""
    return f"{summary.elapsed:.2f} s{first}{frames}"


def _raw_body(recorded: RecordedExchange, of: str, data: bytes) -> str:
    """A body of a raw exchange: its text or picture if it is one, otherwise only its description."""
    passed = recorded.passed.get(of)
    if passed is None:
        return ""
    label = f"{passed.media_type or 'no media type'} · {passed.size:,} bytes · SHA-256 {passed.sha256}"
    note = f'<p class="soft">{escape(label)}</p>'
    kind = passed.media_type.partition(";")[0].strip().lower()
    if kind in _PICTURES and passed.kept == passed.size:
        return f'{note}<p><img alt="the body" src="data:{kind};base64,{base64.b64encode(data).decode()}"></p>'
    try:
        return note + block(data.decode()) if data else note
    except UnicodeDecodeError:
        return note


def _request(recorded: RecordedExchange) -> str:
    if recorded.is_raw:
        return _section("Request", _raw_body(recorded, "request", recorded.sent))
    try:
        request = recorded.request()
    except Fault as fault:
        note = f'<p class="bad">It cannot be read: {escape(fault.message)}</p>'
        return _section("Request", note + block(recorded.sent.decode("utf-8", "replace")))
    messages = "".join(map(message_html, request.messages))
    tools = "".join(map(tool_html, request.tools))
    options: Json = msgspec.to_builtins(request.options)
    if isinstance(options, dict):
        options.pop("places", None)
    more = details_of(f"{len(request.tools)} tools", tools) if tools else ""
    more += details_of("Options", block(pretty(options))) if options else ""
    return _section("Request", messages) + (_section("Tools and options", more) if more else "")


def _reply(recorded: RecordedExchange) -> str:
    if recorded.is_raw:
        return _section("Answer", _raw_body(recorded, "reply", recorded.reply_body))
    reply = recorded.reply()
    articles = [
        f'<article class="assistant"><h3>assistant{f", choice {number}" if len(reply.choices) > 1 else ""}'
        f"{f' · {escape(choice.finish)}' if choice.finish else ''}</h3>{parts_html(choice.parts)}</article>"
        for number, choice in enumerate(reply.choices, 1)
        if choice.parts or choice.finish
    ]
    if reply.fault is not None:
        hint = f'<p class="soft">{escape(reply.fault.hint)}</p>' if reply.fault.hint else ""
        words = f"{reply.fault.code}: {reply.fault.message}"
        articles.append(f'<article><p class="bad">{escape(words)}</p>{hint}</article>')
    raw = recorded.reply_body.decode("utf-8", "replace")
    return _section("Reply", "".join(articles) + (details_of("As it came", block(raw)) if raw else ""))


def _losses(recorded: RecordedExchange) -> str:
    lost = [(each.severity, each.pointer or "/", each.what, each.why) for each in recorded.losses]
    added = [("added", each.pointer or "/", each.what, each.why) for each in recorded.additions]
    if not lost and not added:
        return ""
    return _section("Lost and added in translation", _table(("kind", "place", "what", "why"), [*lost, *added]))


def _facts(recorded: RecordedExchange) -> str:
    began = recorded.facts[0].at
    rows = [(f"{entry.at - began:+.3f} s", *described) for entry, described in _describe_facts(recorded)]
    return _section("What happened", _table(("when", "what", ""), rows))


def _describe_facts(recorded: RecordedExchange) -> Iterator[tuple[FactEntry, tuple[str, str]]]:
    """Each fact except frames, of which only the first is listed, with their number."""
    has_listed_frames = False
    for entry in recorded.facts:
        if isinstance(entry.fact, FrameArrived):
            if not has_listed_frames:
                has_listed_frames = True
                yield entry, ("frames", f"{_pieces(recorded)}, {len(recorded.reply_body):,} bytes")
            continue
        plain: JsonObject = msgspec.to_builtins(entry.fact)
        kind = str(plain.pop("kind"))
        shown = {key: value for key, value in plain.items() if value not in ("", 0, 0.0, None, [], {})}
        for long in ("headers", "report", "additions", "usage", "telemetry"):
            shown.pop(long, None)
        if isinstance(entry.fact, Budgeted):
            shown["stage"] = str(entry.fact.telemetry.get("stage"))
        yield entry, (kind, ", ".join(f"{key} {value}" for key, value in shown.items()))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n"


def _table(names: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _pieces(recorded: RecordedExchange) -> str:
    count = len(recorded.frames)
    return "1 piece" if count == 1 else f"{count:,} pieces"
