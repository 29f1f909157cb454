"""Small conversations for the tests of edits: an agent's turn in two dialects, as values to change and as drafts."""

import copy
import json

from sightline.editing.draft import Draft
from sightline.editing.mask_making import MaskMaker
from sightline.editing.masks import Mask, Strip, with_id
from sightline.editing.operations import Edit, Keep
from sightline.model.json import Json

ADD = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}
SUB = {"name": "sub", "input_schema": {"type": "object", "properties": {}}}

CLAUDE: dict[str, Json] = {
    "model": "claude",
    "max_tokens": 1000,
    "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    "tools": [ADD, SUB],
    "messages": [
        {"role": "user", "content": "What is 1+1?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I add.", "signature": "c2VhbDE="},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2"}]},
        {"role": "assistant", "content": "It is 2."},
        {"role": "user", "content": "And 2+2?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I add again.", "signature": "c2VhbDI="},
                {"type": "tool_use", "id": "t2", "name": "add", "input": {"a": 2}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "4"}]},
        {"role": "assistant", "content": "It is 4."},
        {"role": "user", "content": "Thanks."},
    ],
}

CHAT: dict[str, Json] = {
    "model": "gpt",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What is 1+1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "2"},
        {"role": "assistant", "content": "It is 2."},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}],
    "temperature": 1,
    "max_completion_tokens": 100,
}


def claude(**changes: Json) -> dict[str, Json]:
    return {**copy.deepcopy(CLAUDE), **changes}


def chat(**changes: Json) -> dict[str, Json]:
    return {**copy.deepcopy(CHAT), **changes}


def drafted(document: Json, dialect: str = "anthropic") -> Draft:
    return Draft.of(json.dumps(document).encode(), dialect)


def ids(draft: Draft, kind: str) -> list[str]:
    """The sections of a kind."""
    return [section.id for section in draft.sections if section.kind == kind]


def part_of(draft: Draft, kind: str, nth: int = 0) -> tuple[str, str]:
    """The section and the id of the nth part of a type."""
    found = [(section.id, part.id) for section in draft.sections for part in section.parts if part.type == kind]
    return found[nth]


def mask_of(before: Draft, operation: Edit, after: Draft, scope: Keep, name: str) -> Mask:
    """The mask that an edit with `keep` makes."""
    return MaskMaker(before.first, scope, name).of_edit(before, operation, after)[1]


def strip_of(strip: Strip, scope: Keep, name: str) -> Mask:
    """The mask that strips a class of things from every request, as the page sends it."""
    return with_id(Mask(scope=scope, name=name, kind="strip", strip=strip))
