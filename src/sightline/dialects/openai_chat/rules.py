"""What the Chat Completions API rejects."""

import re

from sightline.dialects import openai_rules
from sightline.dialects.dialect import Problem
from sightline.dialects.fields import object_at, objects_in
from sightline.dialects.openai_chat.content import is_media
from sightline.dialects.option_table import OF_CHAT
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import no_messages, pairing_problems, tool_problems
from sightline.model.json import Json
from sightline.model.parts import Audio, ToolCall, ToolResult
from sightline.model.request import Request, parts_of

NAMES = NameRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), 64)
MOST_TOOLS = 128
MOST_STOPS = 4
LONGEST_ID = 40
"""The vendor's own server refuses longer ids of calls; others make longer ones and want them back as they are."""


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    return [
        *no_messages(request, "/messages"),
        *pairing_problems(request, adjacent=True),
        *tool_problems(request, None, MOST_TOOLS),
        *_message_problems(request),
        *_id_problems(request),
        *_option_problems(request),
    ]


def vendor_problems(document: Json) -> list[Problem]:
    """What OpenAI's own server refuses in a body, while others of this API may take it."""
    body = object_at(document)
    return [
        *openai_rules.option_problems(body, OF_CHAT),
        *openai_rules.tool_problems(body.get("tools"), "/tools", is_nested=True),
        *openai_rules.choice_problems(body.get("tool_choice"), is_nested=True),
        *openai_rules.format_problems(
            object_at(body, "response_format", "json_schema"), "/response_format/json_schema"
        ),
        *(
            problem
            for index, message in objects_in(body.get("messages"))
            for number, call in objects_in(message.get("tool_calls"))
            for problem in openai_rules.call_problems(
                object_at(call, "function"), f"/messages/{index}/tool_calls/{number}/function"
            )
        ),
    ]


def _message_problems(request: Request) -> list[Problem]:
    found: list[Problem] = []
    for message in request.messages:
        if not message.parts:
            found.append(Problem(message.at, "this message says nothing and calls nothing"))
        if message.role == "user":
            continue
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            found += [
                Problem(each.at, f"only a user message may hold this {each.__class__.__name__.lower()}")
                for each in inner
                if is_media(each) and not (isinstance(each, Audio) and each.id is not None)
            ]
    return found


def _id_problems(request: Request) -> list[Problem]:
    return [
        Problem(
            f"{part.at}/{'id' if isinstance(part, ToolCall) else 'tool_call_id'}",
            f"this id has {len(part.id)} characters, the vendor's server takes at most {LONGEST_ID}",
            "warning",
        )
        for part in parts_of(request.messages)
        if isinstance(part, (ToolCall, ToolResult)) and len(part.id) > LONGEST_ID
    ]


def _option_problems(request: Request) -> list[Problem]:
    found: list[Problem] = []
    options = request.options
    if not request.model:
        found.append(Problem("/model", "no model is named"))
    if options.max_tokens is not None and options.max_tokens < 1:
        found.append(Problem(options.places.get("max_tokens", ""), "the reply needs room for at least one token"))
    if options.stop is not None and len(options.stop) > MOST_STOPS:
        found.append(Problem(options.places.get("stop", ""), f"at most {MOST_STOPS} stop texts are taken"))
    if not request.tools:
        if request.tool_choice is not None:
            found.append(Problem(request.tool_choice.at, "there is a tool choice and no tool"))
        if request.parallel_tool_calls is not None:
            found.append(Problem("/parallel_tool_calls", "there is a rule for parallel calls and no tool"))
    return found
