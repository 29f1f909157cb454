"""What the API rejects, and what it handles badly, in the structure of a request."""

import re

from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import Problem
from sightline.dialects.gemini.options import STOP_LIMIT
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import no_messages, tool_problems
from sightline.model.message import Message
from sightline.model.options import SchemaFormat
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import FunctionTool

NAMES = NameRule(re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"), 128)


def problems(request: Request) -> list[Problem]:
    """Every problem that the request as it stands would meet."""
    contents = [message for message in request.messages if message.role not in SYSTEM_ROLES]
    return [
        *no_messages(request, "/contents"),
        *_empty(request.messages),
        *_pairing(contents),
        *_order(contents),
        *tool_problems(request, NAMES),
        *_schemas(request),
        *_settings(request),
    ]


def _empty(messages: tuple[Message, ...]) -> list[Problem]:
    found: list[Problem] = []
    for message in messages:
        if not message.parts:
            found.append(Problem(message.at, "this content has no parts"))
        found.extend(
            Problem(part.at, "this text is empty")
            for part in message.parts
            if isinstance(part, Text) and not part.text and part.signature is None
        )
    return found


def _pairing(contents: list[Message]) -> list[Problem]:
    """Every call is answered in the content right after it, by id, or by name and order where ids are absent."""
    found: list[Problem] = []
    waiting: list[ToolCall] = []
    for message in contents:
        for part in message.parts:
            if isinstance(part, ToolResult):
                call = next((call for call in waiting if _answers(part, call)), None)
                if call is None:
                    found.append(Problem(part.at, f"this function response ({part.name!r}) answers no call before it"))
                else:
                    waiting.remove(call)
        found.extend(_missing_responses(waiting))
        waiting = [part for part in message.parts if isinstance(part, ToolCall)]
    return [*found, *_missing_responses(waiting)]


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.id and call.id:
        return result.id == call.id
    return result.name == call.name


def _missing_responses(calls: list[ToolCall]) -> list[Problem]:
    return [Problem(call.at, f"the call of {call.name!r} has no response in the next content") for call in calls]


def _order(contents: list[Message]) -> list[Problem]:
    found: list[Problem] = []
    for index, message in enumerate(contents):
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls and (index == 0 or contents[index - 1].role == "assistant"):
            found.append(
                Problem(calls[0].at, "a function call must come right after a user turn or a function response")
            )
    if contents and contents[0].role == "assistant":
        found.append(Problem(contents[0].at, "a conversation should begin with the user", "warning"))
    if contents and contents[-1].role == "assistant":
        found.append(Problem(contents[-1].at, "a conversation should end with the user", "warning"))
    return found


def _schemas(request: Request) -> list[Problem]:
    return [
        Problem(f"{tool.at}/parameters", "parameters and parametersJsonSchema exclude each other")
        for tool in request.tools
        if isinstance(tool, FunctionTool) and tool.extras.get("parameters") is not None
    ]


def _settings(request: Request) -> list[Problem]:
    found: list[Problem] = []
    options = request.options
    if options.stop is not None and len(options.stop) > STOP_LIMIT:
        at = options.places.get("stop", "/generationConfig/stopSequences")
        found.append(Problem(at, f"{len(options.stop)} stop sequences are more than the {STOP_LIMIT} that are taken"))
    if isinstance(options.format, SchemaFormat) and "responseMimeType" in options.format.extras:
        found.append(Problem(options.format.at, "a schema for the answer needs responseMimeType application/json"))
    reasoning = options.reasoning
    if reasoning is not None and reasoning.effort and (reasoning.budget is not None or reasoning.mode):
        found.append(Problem(reasoning.at, "thinkingLevel and thinkingBudget exclude each other"))
    return found
