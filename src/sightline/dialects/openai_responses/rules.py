"""What the Responses API rejects, and what it handles badly."""

import re
from collections.abc import Iterator

from sightline.dialects import openai_rules
from sightline.dialects.dialect import Problem
from sightline.dialects.fields import object_at, objects_in
from sightline.dialects.openai_responses.client_tools import BY_CALL, arguments_field, is_client_call
from sightline.dialects.openai_responses.request import LONGEST_ID, STATE
from sightline.dialects.option_table import OF_RESPONSES
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import pairing_problems, tool_problems
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque, Thinking, ToolCall, ToolResult
from sightline.model.request import Request, parts_of

NAMES = NameRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), 64, has_namespaces=True)
MOST_TOOLS = 128
LEAST_TOKENS = 16
MOST_METADATA, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    # Calls of built-in tools that ask for nothing: they are read as no calls at all.
    found: list[Problem] = []
    for part in parts_of(request.messages):
        item = part.value if isinstance(part, Opaque) and isinstance(part.value, dict) else {}
        if is_client_call(item) and arguments_field(item) is None:
            fields = " or ".join(BY_CALL[str(item["type"])].fields)
            found.append(Problem(part.at, f"this call needs an object under {fields}"))
    return [
        *_input_problems(request),
        *_pairing_problems(request),
        *found,
        *_id_problems(request),
        *_reasoning_problems(request),
        *tool_problems(request, None, MOST_TOOLS),
        *_option_problems(request),
    ]


def vendor_problems(document: Json) -> list[Problem]:
    """What OpenAI's own server refuses in a body, while others of this API may take it."""
    body = object_at(document)
    return [
        *openai_rules.option_problems(body, OF_RESPONSES),
        *openai_rules.tool_problems(body.get("tools"), "/tools", is_nested=False),
        *openai_rules.choice_problems(body.get("tool_choice"), is_nested=False),
        *openai_rules.format_problems(object_at(body, "text", "format"), "/text/format"),
        *(problem for index, item in objects_in(body.get("input")) for problem in _item_problems(item, index)),
    ]


def _item_problems(item: JsonObject, index: int) -> Iterator[Problem]:
    match item.get("type"):
        case "function_call" | "custom_tool_call":
            yield from openai_rules.call_problems(item, f"/input/{index}")
        case "additional_tools":
            yield from openai_rules.tool_problems(item.get("tools"), f"/input/{index}/tools", is_nested=False)
        case _:
            pass


def brings_state(request: Request) -> bool:
    """Whether the provider knows more of the conversation than the request holds."""
    if request.options.previous_response_id is not None or any(request.extras.get(key) for key in STATE):
        return True
    return any(
        isinstance(part, Opaque) and isinstance(part.value, dict) and part.value.get("type") == "item_reference"
        for part in parts_of(request.messages)
    )


def _input_problems(request: Request) -> list[Problem]:
    found: list[Problem] = []
    if not request.model and not request.extras.get("prompt"):
        found.append(Problem("/model", "no model is named"))
    if not brings_state(request) and all(message.at == "/instructions" for message in request.messages):
        found.append(Problem("/input", "there is no input to answer"))
    return found


def _pairing_problems(request: Request) -> list[Problem]:
    """Calls and results may stand apart; a result may answer a call that only the provider still has."""
    found = pairing_problems(request, adjacent=False)
    if not brings_state(request):
        return found
    results = {part.at for part in parts_of(request.messages) if isinstance(part, ToolResult)}
    return [problem for problem in found if problem.pointer not in results]


def _id_problems(request: Request) -> list[Problem]:
    return [
        Problem(f"{part.at}/call_id", f"this id has {len(part.id)} characters, at most {LONGEST_ID} are taken")
        for part in parts_of(request.messages)
        if isinstance(part, (ToolCall, ToolResult)) and len(part.id) > LONGEST_ID
    ]


def _reasoning_problems(request: Request) -> list[Problem]:
    """A reasoning item must be followed by the item that it led to."""
    found: list[Problem] = []
    followers = (*request.messages[1:], None)
    for message, follower in zip(request.messages, followers, strict=False):
        is_last = follower is None or follower.role != "assistant"
        if is_last and message.parts and isinstance(message.parts[-1], Thinking):
            text = "reasoning is refused without the item that followed it"
            found.append(Problem(message.parts[-1].at, text, "warning"))
    return found


def _option_problems(request: Request) -> list[Problem]:
    options = request.options
    found: list[Problem] = []
    if options.max_tokens is not None and options.max_tokens < LEAST_TOKENS:
        place = options.places.get("max_tokens", "/max_output_tokens")
        found.append(Problem(place, f"the reply needs room for at least {LEAST_TOKENS} tokens", "warning"))
    if options.metadata is not None:
        at = options.places.get("metadata", "/metadata")
        if len(options.metadata) > MOST_METADATA:
            found.append(Problem(at, f"at most {MOST_METADATA} pairs are taken"))
        for key, value in options.metadata.items():
            if not isinstance(value, str) or len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
                limits = f"{LONGEST_KEY} and {LONGEST_VALUE} characters at most"
                found.append(Problem(at, f"the pair {key[:LONGEST_KEY]!r} must be two strings of {limits}"))
    return found
