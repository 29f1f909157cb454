"""What a response repeats of its request: the API, and the open specification that follows it, demand every setting in
each `response` object, with its default where the request is silent."""

from collections.abc import Mapping

import msgspec

from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_object, object_at, objects_in
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.request import write_request
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import Request

_DEFAULTS: Mapping[str, Json] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "background": False,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_logprobs": 0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "tool_choice": "auto",
    "tools": [],
    "truncation": "disabled",
    "metadata": {},
    "user": None,
}
_FUNCTION: JsonObject = {"description": None, "parameters": None, "strict": True}
_SCHEMA: JsonObject = {"description": None, "schema": None, "strict": False}


def echo(request: Request) -> JsonObject:
    """The settings of a request of this dialect as its response shows them; of any other, none."""
    if request.dialect != NAME:
        return {}
    asked = as_object(write_request(msgspec.structs.replace(request, messages=()), Target(), Report()), "")
    asked["instructions"] = _instructions(request)
    shown: JsonObject = {
        name: default if asked.get(name) is None else asked[name] for name, default in _DEFAULTS.items()
    }
    shown["tools"] = [
        {**_FUNCTION, **tool} if tool.get("type") == "function" else tool for _, tool in objects_in(shown["tools"])
    ]
    output = {**object_at(asked, "text")}
    chosen: JsonObject = object_at(output, "format") or {"type": "text"}
    output["format"] = {**_SCHEMA, **chosen} if chosen.get("type") == "json_schema" else chosen
    reasoning: JsonObject = {"effort": None, "summary": None, **object_at(asked, "reasoning")}
    return {**shown, "text": output, "reasoning": reasoning}


def _instructions(request: Request) -> Json:
    match request.messages[:1]:
        case (first,) if first.at == "/instructions":
            return "".join(part.text for part in first.parts if isinstance(part, Text))
        case _:
            return None
