"""Rules about a request's structure that several APIs share; each dialect chooses which it enforces."""

from collections import Counter

from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import Problem
from sightline.dialects.tool_names import NameRule, arguments_object, flat_name
from sightline.model.parts import CacheBreakpoint, Part, Text, ToolCall, ToolResult
from sightline.model.request import OpaqueTool, Request, parts_of

TOOL_NAME = "tool_name"
"""The rule for the names of tools."""


def pairing_problems(request: Request, *, adjacent: bool) -> list[Problem]:
    """Results that answer no call, and calls that nothing answers.

    `adjacent`: the results must follow the calls directly. Otherwise they may come anywhere later.
    """
    problems: list[Problem] = []
    waiting: dict[str, ToolCall] = {}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                if waiting.pop(part.id, None) is None:
                    problems.append(Problem(part.at, f"this tool result answers no open call (id {part.id!r})"))
            elif adjacent and waiting and message.role not in SYSTEM_ROLES and not _may_wait(message.role, part):
                problems.extend(_missing_results(waiting))
                waiting = {}
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.id in waiting:
                    problems.append(Problem(part.at, f"the id {part.id!r} is used by two open calls"))
                waiting[part.id] = part
    problems.extend(_missing_results(waiting))
    return problems


def _may_wait(role: str, part: Part) -> bool:
    """Whether this part may be between a call and its result without counting as a turn."""
    return isinstance(part, CacheBreakpoint) or (role == "assistant" and isinstance(part, ToolCall))


def _missing_results(waiting: dict[str, ToolCall]) -> list[Problem]:
    return [
        Problem(call.at, f"the call of {call.name!r} (id {call.id!r}) has no result where it must stand")
        for call in waiting.values()
    ]


def empty_problems(request: Request, *, whitespace: bool) -> list[Problem]:
    """Messages without content and text parts without text; with `whitespace` also text that is only blank."""
    problems: list[Problem] = []
    for message in request.messages:
        if not [part for part in message.parts if not isinstance(part, CacheBreakpoint)]:
            problems.append(Problem(message.at, "this message has no content"))
        problems.extend(
            Problem(part.at, "this text is empty")
            for part in message.parts
            if isinstance(part, Text) and not (part.text.strip() if whitespace else part.text)
        )
    return problems


def no_messages(request: Request, at: str) -> list[Problem]:
    """A conversation must have something besides system messages."""
    if any(message.role not in SYSTEM_ROLES for message in request.messages):
        return []
    return [Problem(at, "there is no message to answer")]


def argument_problems(request: Request) -> list[Problem]:
    """Arguments of function calls that are not a JSON object."""
    return [
        Problem(part.at, f"the arguments of {part.name!r} are not a JSON object")
        for part in parts_of(request.messages)
        if isinstance(part, ToolCall) and part.kind != "custom" and not is_object(part.arguments)
    ]


def is_object(text: str) -> bool:
    """Whether this is the text of a JSON object."""
    return bool(text) and arguments_object(text) is not None


def tool_problems(request: Request, rule: NameRule | None, limit: int | None = None) -> list[Problem]:
    """Names that the API does not take, duplicate names, and too many tools. Without a rule, any name is taken."""
    problems: list[Problem] = []
    named = [tool for tool in request.tools if not isinstance(tool, OpaqueTool)]
    counts = Counter(flat_name(tool.name, tool.namespace) for tool in named)
    for tool in named:
        if rule is not None and rule.fit(tool.name) != tool.name:
            words = f"the tool name {tool.name!r} must match {rule.pattern.pattern}"
            problems.append(Problem(f"{tool.at}/name", words, rule=TOOL_NAME))
        if counts[flat_name(tool.name, tool.namespace)] > 1:
            problems.append(Problem(tool.at, f"there are several tools named {tool.name!r}"))
    if limit is not None and len(request.tools) > limit:
        excess = len(request.tools) - limit
        problems.append(
            Problem("/tools", f"{len(request.tools)} tools are {excess} more than the {limit} that are taken")
        )
    return [*problems, *_choice_problems(request)]


def _choice_problems(request: Request) -> list[Problem]:
    """Choices of tools that do not exist. A tool that only its own dialect knows may have any name."""
    choice = request.tool_choice
    named = [tool for tool in request.tools if not isinstance(tool, OpaqueTool)]
    if choice is None or not named or len(named) < len(request.tools):
        return []
    known = {name for tool in named for name in (tool.name, flat_name(tool.name, tool.namespace))}
    missing = [name for name in choice.names if name not in known]
    return [Problem(choice.at, f"the tool choice names {name!r}, and there is no such tool") for name in missing]
