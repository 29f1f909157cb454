"""Parses the output of a command target: AgentV's JSON, the JSONL events of Codex and Claude Code, or plain text."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import Message
from sightline.wire.jsontext import decode, encode

OutputForm: TypeAlias = Literal["", "codex", "claude"]


def read_output(data: bytes, form: OutputForm = "") -> CaseObservation:
    """Parse output of this form into an observation. Raises a fault if the program itself reports a failure."""
    match form:
        case "codex":
            return _codex(_lines(data))
        case "claude":
            return _claude(_lines(data))
        case "":
            return _agentv(data)


class _Transcript:
    """Collects the messages and tool uses of an agent in the order of its events."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.uses: dict[str, ToolUse] = {}
        self.words = ""

    def add_text(self, text: str, calls: Iterable[ToolUse] = ()) -> None:
        parts: list[Part] = [Text(text)] if text else []
        for call in calls:
            self.uses[call.id] = call
            arguments = {} if call.arguments is None else call.arguments
            written = arguments if isinstance(arguments, str) else encode(arguments).decode()
            parts.append(ToolCall(call.id, call.name, written))
        if parts:
            self.messages.append(Message("assistant", tuple(parts)))
        self.words = text or self.words

    def answer(self, call: str, text: str, *, is_error: bool = False, seconds: float | None = None) -> None:
        known = self.uses.get(call, ToolUse(name="", id=call))
        self.uses[call] = ToolUse(
            name=known.name, arguments=known.arguments, result=text, is_error=is_error, id=call, seconds=seconds
        )
        result = ToolResult(call, (Text(text),) if text else (), known.name or None, is_error=is_error or None)
        self.messages.append(Message("tool", (result,)))

    def to_observation(
        self,
        text: str,
        *,
        usage: Usage | None,
        cost: float | None = None,
        seconds: float | None = None,
        rounds: int = 1,
        is_traced: bool = True,
    ) -> CaseObservation:
        return CaseObservation(
            messages=tuple(self.messages),
            text=text,
            tools=tuple(self.uses.values()),
            finish="stop",
            usage=usage,
            cost=cost,
            seconds=seconds,
            requests=rounds,
            is_traced=is_traced,
        )


# --- AgentV ---------------------------------------------------------------------------------------


def _agentv(data: bytes) -> CaseObservation:
    """Parse one object with `text` or `output`. Anything else is the answer itself, even if it is JSON."""
    try:
        value = decode(data)
    except Fault:
        value = None
    transcript = _Transcript()
    if not isinstance(value, dict) or not ("text" in value or "output" in value):
        text = data.decode("utf-8", "replace").strip()
        transcript.add_text(text)
        return transcript.to_observation(text, usage=None, is_traced=False)
    _add_output(value.get("output"), transcript)
    answer = value.get("text")
    if isinstance(answer, str):
        if not any(message.role == "assistant" for message in transcript.messages):
            transcript.add_text(answer)
        transcript.words = answer
    return transcript.to_observation(
        transcript.words,
        usage=_usage(value.get("token_usage"), "input", "output", "cached"),
        cost=_number(value.get("cost_usd")),
        seconds=_seconds(value),
        is_traced=isinstance(value.get("output"), list),
    )


def _add_output(output: Json, transcript: _Transcript) -> None:
    if isinstance(output, str):
        transcript.add_text(output)
    for message in output if isinstance(output, list) else ():
        if not isinstance(message, dict) or message.get("role") not in (None, "assistant"):
            continue
        listed = message.get("tool_calls")
        calls = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        named = [(_id(call, len(transcript.uses) + number), call) for number, call in enumerate(calls, 1)]
        uses = [_use(name, call) for name, call in named]
        transcript.add_text(_content(message.get("content")), uses)
        for use, call in zip(uses, calls, strict=True):
            if "output" in call:
                transcript.answer(use.id, _text(call["output"]), is_error=use.is_error, seconds=use.seconds)


def _use(name: str, call: JsonObject) -> ToolUse:
    """A tool call with its duration and error flag; both may be present without a result."""
    return ToolUse(
        name=str(call.get("tool", "")),
        arguments=call.get("input"),
        id=name,
        is_error=call.get("status") not in (None, "ok", "success", "completed"),
        seconds=_seconds(call),
    )


def _id(call: JsonObject, number: int) -> str:
    found = call.get("id")
    return found if isinstance(found, str) and found else f"call_{number}"


def _content(content: Json) -> str:
    if isinstance(content, list):
        blocks = [each for each in content if isinstance(each, dict)]
        return "\n".join(_block(block) for block in blocks)
    return _text(content)


def _block(block: JsonObject) -> str:
    """The text of a block. A file is represented by its name because its content is not available."""
    if block.get("type") in ("file", "image"):
        name = next((block[key] for key in ("path", "source", "value") if block.get(key)), "")
        return f"[{block['type']}: {_text(name) if not str(name).startswith('data:') else 'data'}]"
    return _text(block.get("text", block.get("value", "")))


# --- codex ----------------------------------------------------------------------------------------


def _codex(events: list[JsonObject]) -> CaseObservation:
    transcript, usage, rounds = _Transcript(), None, 0
    for event in events:
        item = event.get("item")
        match event.get("type"):
            case "item.completed" if isinstance(item, dict):
                _add_item(item, transcript)
            case "turn.completed":
                usage = _usage(event.get("usage"), "input_tokens", "output_tokens", "cached_input_tokens")
                rounds += 1
            case "turn.failed":
                error = event.get("error")
                words = error.get("message") if isinstance(error, dict) else event.get("message")
                raise _failure("codex", _text(words))
            case _:
                pass
    if not rounds:
        raise _failure("codex", "it did not come to the end of its turn")
    return transcript.to_observation(transcript.words, usage=usage, rounds=rounds)


def _add_item(item: JsonObject, transcript: _Transcript) -> None:
    name = str(item.get("id", f"item_{len(transcript.uses)}"))
    failed = item.get("status") in ("failed", "declined")
    arguments: Json
    match item.get("type"):
        case "agent_message":
            transcript.add_text(_text(item.get("text")))
            return
        case "command_execution":
            tool, arguments, result = "shell", {"command": item.get("command")}, item.get("aggregated_output")
            failed = failed or bool(item.get("exit_code"))
        case "mcp_tool_call":
            tool, arguments = f"{item.get('server')}__{item.get('tool')}", item.get("arguments")
            result = item.get("error") if failed else item.get("result")
        case "file_change":
            tool, arguments, result = "apply_patch", {"changes": item.get("changes")}, item.get("status")
        case "web_search":
            tool, arguments, result = "web_search", {"query": item.get("query")}, None
        case _:
            return
    transcript.add_text("", [ToolUse(name=tool, arguments=arguments, id=name)])
    transcript.answer(name, _text(result), is_error=failed)


# --- claude ---------------------------------------------------------------------------------------


def _claude(events: list[JsonObject]) -> CaseObservation:
    transcript, end = _Transcript(), None
    for event in events:
        message = event.get("message")
        blocks = message.get("content") if isinstance(message, dict) else None
        if event.get("type") == "assistant":
            _add_blocks(blocks, transcript)
        elif event.get("type") == "user" and isinstance(blocks, list):
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    text = _content(block.get("content"))
                    transcript.answer(str(block.get("tool_use_id", "")), text, is_error=block.get("is_error") is True)
        elif event.get("type") == "result":
            end = event
    if end is None:
        raise _failure("claude", "it did not end")
    if end.get("is_error") is True:
        raise _failure("claude", _text(end.get("result")) or _text(end.get("subtype")))
    turns = end.get("num_turns")
    return transcript.to_observation(
        _text(end.get("result")) or transcript.words,
        usage=_claude_usage(end.get("usage")),
        cost=_number(end.get("total_cost_usd")),
        seconds=_seconds(end),
        rounds=turns if isinstance(turns, int) else 1,
    )


def _add_blocks(blocks: Json, transcript: _Transcript) -> None:
    found = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    transcript.add_text(
        "".join(_text(block.get("text")) for block in found if block.get("type") == "text"),
        [
            ToolUse(name=str(block.get("name", "")), arguments=block.get("input"), id=str(block.get("id", "")))
            for block in found
            if block.get("type") == "tool_use"
        ],
    )


def _claude_usage(value: Json) -> Usage | None:
    """Parse usage. Claude's `input_tokens` excludes cached and cache-written tokens, so they are added."""
    if not isinstance(value, dict) or not isinstance(given := value.get("input_tokens"), int):
        return None
    cached, written = _count(value.get("cache_read_input_tokens")), _count(value.get("cache_creation_input_tokens"))
    got, kept = value.get("output_tokens"), value.get("cache_creation")
    return Usage(
        input_tokens=given + (cached or 0) + (written or 0),
        output_tokens=_count(got),
        cached_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=_count(kept.get("ephemeral_1h_input_tokens")) if isinstance(kept, dict) else None,
    )


# --- pieces ---------------------------------------------------------------------------------------


def _lines(data: bytes) -> list[JsonObject]:
    """Parse JSON objects, one per line. Other lines are for people and are skipped."""
    found: list[JsonObject] = []
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = decode(line)
            except Fault:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def _usage(value: Json, given: str, got: str, cached: str) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    return Usage(
        input_tokens=_count(value.get(given)),
        output_tokens=_count(value.get(got)),
        cached_tokens=_count(value.get(cached)),
    )


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _seconds(value: JsonObject) -> float | None:
    duration = _number(value.get("duration_ms"))
    return None if duration is None else duration / 1000


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def _failure(program: str, words: str) -> Fault:
    return Fault(Code.UPSTREAM_ERROR, f"{program} says that it failed: {words}", hint="Run it by hand to see more.")
