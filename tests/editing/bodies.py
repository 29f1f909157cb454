"""Small requests of every dialect, as clients write them, for the tests of the editor."""

import json

from sightline.editing.draft import Draft
from sightline.model.json import Json, JsonObject

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def text(words: str) -> JsonObject:
    """A text block of the Messages API, and a text part of Chat Completions."""
    return {"type": "text", "text": words}


def anthropic(*messages: Json, **fields: Json) -> Draft:
    """A Messages request."""
    return draft("anthropic", {"model": "m", "max_tokens": 100, "messages": list(messages), **fields})


def chat(*messages: Json, **fields: Json) -> Draft:
    """A Chat Completions request."""
    return draft("openai-chat", {"model": "m", "messages": list(messages), **fields})


def responses(*items: Json, **fields: Json) -> Draft:
    """A Responses request."""
    return draft("openai-responses", {"model": "m", "input": list(items), **fields})


def gemini(*contents: Json, **fields: Json) -> Draft:
    """A generateContent request."""
    return draft("gemini", {"contents": list(contents), **fields})


def raw(*messages: Json, **fields: Json) -> Draft:
    """A request of the raw schema."""
    return draft("raw", {"model": "m", "messages": list(messages), **fields})


def draft(name: str, document: Json, indent: int | None = 1) -> Draft:
    """The draft of a document, spelled with spaces that nobody would write anew."""
    return Draft.of(json.dumps(document, indent=indent).encode(), name)


def said(role: str, content: Json) -> JsonObject:
    """A message."""
    return {"role": role, "content": content}


def round_of_tools(number: int = 1, words: str = "") -> list[Json]:
    """A call of the Messages API and its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
    blocks: list[Json] = [text(words), call] if words else [call]
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "files"}
    return [said("assistant", blocks), said("user", [result])]
