"""Rules about a request's structure that several APIs share; each dialect chooses which it enforces."""

from collections import Counter
from collections.abc import Iterator

from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import Problem
from sightline.dialects.tool_names import NameRule, arguments_object, flat_name
from sightline.model.parts import CacheBreakpoint, ToolCall, ToolResult
from sightline.model.request import OpaqueTool, Request

TOOL_NAME = "tool_name"
"""The rule for the names of tools."""
_BETWEEN = frozenset({CacheBreakpoint, ToolResult})


def pairing_problems(request: Request, *, adjacent: bool) -> Iterator[Problem]:
    """Results that answer no call, and calls that nothing answers.

    `adjacent`: the results must be in the message that follows the calls directly, in any order with its other parts.
    Otherwise they may come anywhere later.
    """
    waiting: dict[str, ToolCall] = {}
    has_results = False  # of the user, since the model's last turn
    for message in request.messages:
        types = {*map(type, message.parts)}
        for part in message.parts if ToolResult in types else ():
            if isinstance(part, ToolResult) and waiting.pop(part.id, None) is None:
                yield Problem(part.at, f"this tool result answers no open call (id {part.id!r})")
        # The model may make several calls in a row, and marks and results may be between a call and its result.
        others = types - _BETWEEN - ({ToolCall} if message.role == "assistant" else _BETWEEN)
        is_next_turn = has_results and message.role == "assistant"
        if adjacent and message.role not in SYSTEM_ROLES and (others or is_next_turn):
            yield from _missing_results(waiting)
            waiting, has_results = {}, False
        has_results = has_results or (ToolResult in types and message.role != "assistant")
        for part in message.parts if ToolCall in types else ():
            if isinstance(part, ToolCall):
                if part.id in waiting:
                    yield Problem(part.at, f"the id {part.id!r} is used by two open calls")
                waiting[part.id] = part
    yield from _missing_results(waiting)


def _missing_results(waiting: dict[str, ToolCall]) -> list[Problem]:
    return [
        Problem(call.at, f"the call of {call.name!r} (id {call.id!r}) has no result where it must stand")
        for call in waiting.values()
    ]


def no_messages(request: Request, at: str) -> list[Problem]:
    """A conversation must have something besides system messages."""
    if any(message.role not in SYSTEM_ROLES for message in request.messages):
        return []
    return [Problem(at, "there is no message to answer")]


def is_object(text: str) -> bool:
    """Whether this is the text of a JSON object."""
    return bool(text) and arguments_object(text) is not None


def tool_problems(request: Request, rule: NameRule | None, limit: int | None = None) -> Iterator[Problem]:
    """Names that the API does not take, duplicate names, and too many tools. Without a rule, any name is taken."""
    named = [tool for tool in request.tools if not isinstance(tool, OpaqueTool)]
    counts = Counter(flat_name(tool.name, tool.namespace) for tool in named)
    for tool in named:
        if rule is not None and rule.fit(tool.name) != tool.name:
            words = f"the tool name {tool.name!r} must match {rule.pattern.pattern}"
            yield Problem(f"{tool.at}/name", words, rule=TOOL_NAME)
        if counts[flat_name(tool.name, tool.namespace)] > 1:
            yield Problem(tool.at, f"there are several tools named {tool.name!r}")
    if limit is not None and len(request.tools) > limit:
        excess = len(request.tools) - limit
        yield Problem("/tools", f"{len(request.tools)} tools are {excess} more than the {limit} that are taken")
    choice = request.tool_choice
    if choice is None or not named or len(named) < len(request.tools):
        return  # a tool that only its own dialect knows may have any name
    known = {name for tool in named for name in (tool.name, flat_name(tool.name, tool.namespace))}
    for name in choice.names:
        if name not in known:
            yield Problem(choice.at, f"the tool choice names {name!r}, and there is no such tool")
