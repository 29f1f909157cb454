"""Tools that a target does not know, converted to names and arguments that it takes, and back again in the reply.

A custom tool becomes a function with one string argument; a tool in a namespace gets a flat name, and a name that the
target refuses is replaced. All of this follows from the client's own request and the target's rule, so that nothing
else is needed to write a reply in the client's terms.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from sightline.errors import Fault
from sightline.model.events import ArgumentsReceived, Failed, Finished, StreamEvent, ToolCallBegun, ToolCallCompleted
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, ToolCall, ToolKind, ToolResult
from sightline.model.report import Report, Severity
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    OpaqueTool,
    Request,
    Tool,
    ToolChoice,
    change_parts,
    parts_of,
)
from sightline.wire.jsontext import decode, encode

INPUT = "input"
"""The only argument of the function that replaces a custom tool."""


@dataclass(frozen=True, slots=True)
class NameRule:
    """What an API takes as the name of a tool."""

    pattern: re.Pattern[str]
    limit: int
    has_namespaces: bool = False

    def fit(self, name: str) -> str:
        """The name itself if the API takes it, otherwise a name that it takes and that is the same each time."""
        if len(name) <= self.limit and self.pattern.fullmatch(name):
            return name
        safe = _UNSAFE.sub("_", name)
        safe = safe if safe[:1].isalpha() else f"_{safe}"
        mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{safe[: self.limit - 9]}_{mark}"

    def wire_name(self, name: str, namespace: str | None) -> str:
        """The name under which the API knows a tool."""
        return self.fit(name if self.has_namespaces else flat_name(name, namespace))


_UNSAFE = re.compile("[^a-zA-Z0-9_-]")
CALLS_AND_RESULTS: frozenset[type[Part]] = frozenset({ToolCall, ToolResult})

BUILT_IN: tuple[ToolKind, ...] = ("local_shell", "shell", "apply_patch", "computer", "tool_search")
"""The kinds of calls that are items of their own in one dialect, and function calls in the others."""

ANY_NAME = NameRule(re.compile(".*", re.DOTALL), 1_000_000)


def with_wire_names(
    request: Request, rule: NameRule, report: Report, target: str, *, keeps_kinds: bool = False
) -> Request:
    """The request with every tool, call, result and choice under the name that the target's API takes.

    With `keeps_kinds`, the target distinguishes the calls of built-in tools.
    """
    names: dict[str, str] = {}
    tools: list[Tool] = []
    built_in = function_names_of_built_ins(request)
    kinds = _kinds(request, built_in)
    for tool in request.tools:
        if isinstance(tool, OpaqueTool):
            tools.extend(_as_functions(tool, built_in, rule, report, target))
            continue
        wire = names[tool.name] = rule.wire_name(tool.name, tool.namespace)
        if wire != tool.name:
            report.lose(tool.at, f"name {tool.name!r} of a tool", f"{target} knows it as {wire!r}", "identity")
        kept = tool.namespace if rule.has_namespaces else None
        is_same = wire == tool.name and kept == tool.namespace
        tools.append(tool if is_same else msgspec.structs.replace(tool, name=wire, namespace=kept))

    def rename_part(part: Part) -> Part:
        if keeps_kinds and isinstance(part, (ToolCall, ToolResult)) and part.kind in kinds:
            return msgspec.structs.replace(part, name=rule.fit(kinds[part.kind]))
        if isinstance(part, ToolCall) and part.kind in kinds:
            why = f"{target} has no such tool; the call is one of a function"
            report.lose(part.at, f"that {part.name!r} is a built-in tool", why, "identity")
            return msgspec.structs.replace(part, name=rule.fit(kinds[part.kind]), kind="function")
        if isinstance(part, ToolCall):
            kept = part.namespace if rule.has_namespaces else None
            return msgspec.structs.replace(part, name=rule.wire_name(part.name, part.namespace), namespace=kept)
        if isinstance(part, ToolResult) and part.kind in kinds:
            return msgspec.structs.replace(part, kind="function")
        if isinstance(part, ToolResult) and part.name is not None:
            return msgspec.structs.replace(part, name=names.get(part.name) or rule.fit(part.name))
        return part

    messages = request.messages
    if not _have_wire_names(parts_of(messages), names, kinds, rule):
        messages = change_parts(messages, CALLS_AND_RESULTS, rename_part)
    choice = _with_wire_names(request.tool_choice, names, built_in, rule)
    return msgspec.structs.replace(request, messages=messages, tools=tuple(tools), tool_choice=choice)


def _with_wire_names(
    choice: ToolChoice | None, names: dict[str, str], built_in: Mapping[str, str], rule: NameRule
) -> ToolChoice | None:
    if choice is None:
        return None
    if choice.mode == "opaque" and choice.names:  # it forces a built-in tool
        choice = msgspec.structs.replace(choice, mode="named", value=None)
        names = names | {name: rule.fit(other) for name, other in built_in.items()}
    return msgspec.structs.replace(choice, names=tuple(names.get(n) or rule.fit(n) for n in choice.names))


def fit_choice(
    choice: ToolChoice | None, known: Collection[str], report: Report, target: str, *, has_tools: bool
) -> ToolChoice | None:
    """Another dialect's tool choice, as far as the written tools allow it: APIs refuse a choice of a missing tool.
    `known` are the names of these tools."""
    if choice is None:
        return None
    at = choice.at or "/tool_choice"
    if choice.mode == "opaque":
        report.lose(at, "tool choice", f"{target} has no such choice", "option")
        return None
    if not has_tools:
        severity: Severity = "identity" if choice.mode in ("auto", "none") and not choice.names else "option"
        report.lose(at, "tool choice", "there is no tool to choose", severity)
        return None
    names = tuple(name for name in choice.names if name in known)
    for name in choice.names:
        if name not in known:
            report.lose(at, f"choice of the tool {name!r}", "there is no such tool", "option")
    return None if choice.names and not names else msgspec.structs.replace(choice, names=names)


def tool_names(tools: Iterable[Tool]) -> set[str]:
    """The names of the tools that a choice can name in any dialect."""
    return {tool.name for tool in tools if not isinstance(tool, OpaqueTool)}


def _have_wire_names(parts: list[Part], names: Mapping[str, str], kinds: Mapping[str, str], rule: NameRule) -> bool:
    """Whether all calls and results among these parts have names that the target takes, as in most conversations."""
    calls = {(part.name, part.namespace, part.kind) for part in parts if isinstance(part, ToolCall)}
    results = {(part.name, part.kind) for part in parts if isinstance(part, ToolResult)}
    for name, namespace, kind in calls:
        is_taken = rule.wire_name(name, namespace) == name and (namespace is None or rule.has_namespaces)
        if kind in kinds or not is_taken:
            return False
    for result, kind in results:
        if kind in kinds or (result is not None and (names.get(result) or rule.fit(result)) != result):
            return False
    return True


def function_names_of_built_ins(request: Request) -> dict[str, str]:
    """The names of the functions that replace built-in tools; a function whose name another tool has gets a new name.

    The names follow from the request alone, so that the reply is written in the same terms.
    """
    if OpaqueTool not in map(type, request.tools):
        return {}
    taken = {flat_name(tool.name, tool.namespace) for tool in request.tools if not isinstance(tool, OpaqueTool)}
    names: dict[str, str] = {}
    for tool in request.tools:
        for function in tool.functions if isinstance(tool, OpaqueTool) else ():
            name = function.name
            while name in taken:
                name += "_tool"
            names[function.name] = name
    return names


def _kinds(request: Request, built_in: Mapping[str, str]) -> dict[str, str]:
    """The name of the function for each kind of built-in tool, including kinds that occur only in the history."""
    kinds: dict[str, str] = {kind: kind for kind in BUILT_IN}
    for tool in request.tools:
        if isinstance(tool, OpaqueTool) and tool.kind in kinds:
            kinds[tool.kind] = built_in[tool.functions[0].name]
    return kinds


def _as_functions(
    tool: OpaqueTool, built_in: Mapping[str, str], rule: NameRule, report: Report, target: str
) -> list[Tool]:
    """A tool that the target does not have, as functions if the client runs it; otherwise unchanged."""
    if not tool.functions or tool.dialect == target:
        return [tool]
    kind = tool.value.get("type") if isinstance(tool.value, dict) else None
    functions: list[Tool] = []
    for function in tool.functions:
        name = rule.fit(built_in[function.name])
        why = f"{target} has no such tool; a function that says what it does stands for it"
        report.add("/tools", f"description and schema of the built-in tool {kind or name!r}", why)
        functions.append(msgspec.structs.replace(function, name=name, at=tool.at))
    return functions


def flat_name(name: str, namespace: str | None) -> str:
    """The name of a tool in an API without namespaces."""
    return f"{namespace}__{name}" if namespace else name


def function_for(tool: CustomTool) -> FunctionTool:
    """The function that replaces a custom tool; its description contains the grammar."""
    description = tool.description or ""
    if tool.grammar is not None:
        rule = f"The input must follow this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
        description = f"{description}\n\n{rule}".strip()
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {INPUT: {"type": "string"}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    return FunctionTool(tool.name, description or None, schema, namespace=tool.namespace, cache=tool.cache, at=tool.at)


def function_instead(tool: CustomTool, place: str, report: Report, target: str) -> FunctionTool:
    """The function that replaces a custom tool in an API with functions only; reports what that changes.

    `place` is that of the function in the document that is written.
    """
    report.lose(tool.at, "that the tool takes free text", "it became a function of one string", "identity")
    if tool.grammar is not None:
        report.lose(tool.at, "that a grammar is enforced", f"{target} cannot; it is described to the model", "option")
        report.add(f"{place}/description", "the grammar in words", f"{target} has no field for a grammar")
    return function_for(tool)


def as_function_arguments(call: ToolCall) -> str:
    """A call's arguments in the form that a function takes."""
    return encode({INPUT: call.arguments}).decode() if call.kind == "custom" else call.arguments


def arguments_object(arguments: str) -> JsonObject | None:
    """The arguments as an object; the empty string is the empty object, and None stands for anything else."""
    if not arguments:
        return {}
    try:
        value = decode(arguments)
    except Fault:
        return None
    return value if isinstance(value, dict) else None


def free_text(arguments: str) -> str:
    """The text for a custom tool, from the arguments of the function that replaced it."""
    value = arguments_object(arguments)
    if value and len(value) == 1 and isinstance(text := value.get(INPUT), str):
        return text
    return arguments


class NameRestorer:
    """Gives the calls of a reply back the names and kinds that the client's request has for them."""

    def __init__(self, request: Request, rule: NameRule = ANY_NAME) -> None:
        self._tools: dict[str, FunctionTool | CustomTool] = {}
        self._kinds: dict[str, tuple[str, ToolKind]] = {}
        built_in = function_names_of_built_ins(request)
        for tool in request.tools:
            if isinstance(tool, OpaqueTool):
                for function in tool.functions:
                    self._kinds[rule.fit(built_in[function.name])] = function.name, tool.kind
            else:
                self._tools[rule.wire_name(tool.name, tool.namespace)] = tool
        self._open: dict[tuple[int, int], list[str]] = {}

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The event in the client's terms; a custom tool's arguments are returned as a whole once they are complete."""
        match event:
            case ToolCallBegun() if (tool := self._tools.get(event.name)) is not None:
                kind = "custom" if isinstance(tool, CustomTool) else event.kind
                if kind != event.kind:
                    self._open[event.choice, event.part] = []
                return [msgspec.structs.replace(event, name=tool.name, namespace=tool.namespace, kind=kind)]
            case ToolCallBegun() if event.kind == "function" and event.name in self._kinds:
                name, kind = self._kinds[event.name]
                return [msgspec.structs.replace(event, name=name, kind=kind)]
            case ArgumentsReceived(part, fragment, choice) if (choice, part) in self._open:
                self._open[choice, part].append(fragment)
                return []
            case ToolCallCompleted(part, choice) if (choice, part) in self._open:
                return [self._whole(choice, part), event]
            case Finished() | Failed():
                return [*(self._whole(*key) for key in list(self._open)), event]
            case _:
                return [event]

    def _whole(self, choice: int, part: int) -> StreamEvent:
        return ArgumentsReceived(part, free_text("".join(self._open.pop((choice, part)))), choice)
