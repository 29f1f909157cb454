"""A generateContent body as a canonical request: one message for each content, the system instruction before them."""

from sightline.dialects.fields import as_object, opt_object, opt_str, rest, unknown, wrong
from sightline.dialects.gemini.field_names import NAME, both, either, spelling_of
from sightline.dialects.gemini.options import CONFIG_KEYS, TABLE, read_format, read_reasoning
from sightline.dialects.gemini.parts_read import read_part
from sightline.dialects.gemini.thinking import with_joined_thoughts
from sightline.dialects.gemini.tools import read_tool_config, read_tools
from sightline.dialects.option_table import options_of, read_options, top_level_keys
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message, Role
from sightline.model.options import Options
from sightline.model.parts import Part, Text
from sightline.model.request import Request
from sightline.model.tools import ToolChoice

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}
_CONTENT = frozenset({"role", "parts"})
MODEL, TOOLS = "model", "tools"
"""Fields that a body may leave out: a null in the extras says that it had them."""
_TOP = top_level_keys(TABLE) | both("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def read_request(body: Json) -> Request:
    """The request that a body makes."""
    document = as_object(body, "")
    contents = document.get("contents")
    if type(contents) is list:
        messages = [_message(item, f"/contents/{index}") for index, item in enumerate(contents)]
    elif type(contents) is dict:
        messages = [_message(contents, "/contents")]
    else:
        raise wrong(contents, "/contents", "a list")
    messages = with_joined_thoughts(messages, document)
    instruction = either(document, "systemInstruction")
    if instruction is not None:
        messages.insert(0, _system(instruction, f"/{spelling_of(document, 'systemInstruction')}"))
    extras = dict(rest(document, _TOP))
    options = _options(document, extras)
    tools = document.get("tools")
    for name in (MODEL, TOOLS):
        if document.get(name) is not None:
            extras[name] = None
    return Request(
        model=opt_str(document, "model", "") or "",
        messages=tuple(messages),
        tools=() if tools is None else read_tools(tools, "/tools"),
        tool_choice=_tool_choice(document, extras),
        options=options,
        dialect=NAME,
        extras=extras,
    )


def _message(value: Json, at: str) -> Message:
    content = as_object(value, at)
    word = opt_str(content, "role", at)
    if word is not None and word not in _ROLES:
        raise unknown(word, f"{at}/role", "role", _ROLES)
    extras = rest(content, _CONTENT)
    if word is None or word == "function":
        extras = {**extras, "role": word}
    parts = content.get("parts")
    if parts is None:
        extras = {**extras, "parts": None}
    return Message(_ROLES[word or "user"], _parts(parts, f"{at}/parts"), at=at, extras=extras)


def _parts(value: Json, at: str) -> tuple[Part, ...]:
    """The parts of a list, or the one part that stands without a list, as Google's own examples have it."""
    if type(value) is list:
        return tuple([read_part(item, f"{at}/{index}") for index, item in enumerate(value)])
    if type(value) is dict:
        return (read_part(value, at),)
    if value is None:
        return ()
    raise wrong(value, at, "a list")


def _system(value: Json, at: str) -> Message:
    if type(value) is str:
        return Message("system", (Text(value, at=at),), bare=True, at=at)
    if type(value) is list:
        return Message("system", _parts(value, at), at=at)
    content = as_object(value, at)
    parts = content.get("parts")
    extras = rest(content, frozenset({"parts"}))
    if parts is None:
        extras = {**extras, "parts": None}
    return Message("system", _parts(parts, f"{at}/parts"), at=at, extras=extras)


def _options(document: JsonObject, extras: JsonObject) -> Options:
    """The options; what `generationConfig` holds besides goes to the extras, in its container."""
    found, places = read_options(document, TABLE)
    key = spelling_of(document, "generationConfig")
    config = opt_object(document, key, "")
    if config is not None:
        at = f"/{key}"
        chosen, known = read_format(config, at)
        if chosen is not None:
            places["format"] = chosen.at
        reasoning = read_reasoning(config, at)
        found |= {"format": chosen, "reasoning": reasoning}
        others = rest(config, CONFIG_KEYS | known)
        if others or not config:
            extras[key] = others
    return options_of(found, places)


def _tool_choice(document: JsonObject, extras: JsonObject) -> ToolChoice | None:
    key = spelling_of(document, "toolConfig")
    config = opt_object(document, key, "")
    if config is None:
        return None
    choice, others = read_tool_config(config, f"/{key}")
    if others or not config:
        extras[key] = others
    return choice
