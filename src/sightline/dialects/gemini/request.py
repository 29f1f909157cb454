"""Reads and writes a generateContent body: one message per content, the system instruction first.

A client sends a thought back in the pieces in which the stream sent it: first the text, then a signature on an empty
text. They are read as one thought, so that both stay together in every other dialect. The pieces stay beside it, each
in its place, as opaque parts whose content is elsewhere; our own writer writes them instead of the thought.
"""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from sightline.dialects import signatures as signatures
from sightline.dialects.conversation import (
    SYSTEM_ROLES,
    as_turns,
    is_mirrored,
    leading_count,
    plain_text,
    with_answers,
    with_policy,
    with_user_message,
)
from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_list, as_object, opt_object, opt_str, rest, unknown, wrong
from sightline.dialects.gemini.field_names import NAME, both, either, restore_extras, spelling_of
from sightline.dialects.gemini.options import CONFIG_KEYS, TABLE, read_format, read_reasoning, write_all
from sightline.dialects.gemini.parts import call_part, media_part, read_part, sign_calls, with_carried_thoughts
from sightline.dialects.gemini.tools import read_tool_config, read_tools, write_choice, write_tools
from sightline.dialects.losses import lose_unknown
from sightline.dialects.option_table import options_of, read_options, set_path, top_level_keys
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report, Severity
from sightline.model.request import Message, Options, Request, Role, ToolChoice
from sightline.wire.pointer import resolve

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}
_CONTENT = frozenset({"role", "parts"})
MODEL, TOOLS = "model", "tools"
"""Fields that a body may leave out: a null in the extras records that the body had them."""
_TOP = top_level_keys(TABLE) | both("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def read_request(body: Json) -> Request:
    """Read a request body."""
    document = as_object(body, "")
    contents = document.get("contents")
    if type(contents) is list:
        messages = [_message(item, f"/contents/{index}") for index, item in enumerate(contents)]
    elif type(contents) is dict:
        messages = [_message(contents, "/contents")]
    else:
        raise wrong(contents, "/contents", "a list")
    messages = with_carried_thoughts(with_joined_thoughts(messages, document))
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
    """The parts of a list, or the one part without a list, as in Google's own examples."""
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
    """The options; the other members of `generationConfig` go to the extras, in their container."""
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


class ContentWriter:
    """Writes the messages of one conversation in order; `same`: they were read from this dialect.

    It remembers the calls so far: an id may be used again, and a result answers the last call before it with its id.
    """

    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same
        self._calls: dict[str, ToolCall] = {}

    def content(self, message: Message, parts: list[Json]) -> JsonObject:
        """The content of a message with these parts."""
        if self._same:
            role = "model" if message.role == "assistant" else "user"
            return restore_extras({"role": role, "parts": parts}, message.extras)
        if message.role in SYSTEM_ROLES:
            why = "gemini has none after the beginning: demoted to user"
            self._report.lose(message.at, f"role of a {message.role} message", why, "content")
        return {"role": "model" if message.role == "assistant" else "user", "parts": parts}

    def parts(self, message: Message, place: str) -> list[Json]:
        """The parts of a message. A signature that waits for the part after it is put on that part."""
        out: list[Json] = []
        signature: str | None = None
        for index, part in enumerate(message.parts):
            if self._same and (is_followed_by_pieces(message.parts, index) or part.at.endswith("/thoughtSignature")):
                continue
            if isinstance(part, Thinking) and part.id == signatures.NEXT and part.signed_by == NAME and not part.text:
                signature = part.signature
                continue
            wire = self._part(part, f"{place}/{len(out)}")
            if wire is None:
                continue
            if signature is not None:
                wire = {**wire, "thoughtSignature": signature}
                signature = None
            out.append(restore_extras(wire, part.extras) if self._same and part.extras else wire)
        if signature is not None:
            out.append({"text": "", "thoughtSignature": signature})
        if not out and not self._same:
            # Its content is reported part by part; this is for the message itself, its role and its place.
            self._report.lose(message.at, "a message without content", "gemini refuses an empty content", "identity")
        return out

    def _part(self, part: Part, place: str) -> JsonObject | None:
        match part:
            case Text():
                for citation in part.citations:
                    self._report.lose(citation.at or part.at, "citation", "gemini takes none in a request", "option")
                if not self._same and not part.text and (part.signature is None or part.signed_by != NAME):
                    self._report.lose(part.at, "an empty text", "gemini refuses empty text", "identity")
                    return None
                return self._add_signature({"text": part.text}, part)
            case Thinking():
                return self._thinking(part)
            case ToolCall():
                self._calls[part.id] = part
                return self._add_signature(call_part(part, self._report), part)
            case ToolResult():
                return self._result(part, place)
            case Image() | Document() | Audio():
                media = media_part(part, place, self._report, same=self._same)
                return self._add_signature(media, part) if media is not None and isinstance(part, Image) else media
            case Refusal():
                self._report.lose(part.at, "that it is a refusal", "gemini has only text for it", "identity")
                return {"text": part.text} if part.text else None
            case CacheBreakpoint():
                self._report.lose(part.at, "cache breakpoint", "gemini has no cache breakpoints", "option")
                return None
            case Opaque():
                return self._opaque(part, place)
            case unreachable:
                assert_never(unreachable)

    def _thinking(self, part: Thinking) -> JsonObject | None:
        is_own = part.signature is not None and part.signed_by == NAME
        if part.id is not None and part.signature is None:
            self._report.lose(part.at, "id of the reasoning", "gemini has no ids on thoughts", "identity")
        if part.text or is_own or self._same:
            return self._add_signature({"text": part.text, "thought": True}, part)
        self._report.lose(part.at, "reasoning without text", "only its own provider can read it", "identity")
        return None

    def _add_signature(self, wire: JsonObject, part: Text | Thinking | ToolCall | Image) -> JsonObject:
        if part.signed_by == NAME:
            if part.signature is not None:
                wire["thoughtSignature"] = part.signature
        elif part.signature is not None or part.signed_by is not None:
            self._report.lose(part.at, "signature", "it was made by another provider", "identity")
        return wire

    def _opaque(self, part: Opaque, place: str) -> JsonObject | None:
        if part.mirrored:
            # A piece of a thought is written back as a piece, and only in this dialect; elsewhere its text is part of
            # the whole.
            return self._part(read_part(part.value, part.at), place) if self._same else None
        if part.dialect == NAME and isinstance(part.value, dict):
            return part.value
        lose_unknown(part, NAME, self._report)
        return None

    def _result(self, result: ToolResult, place: str) -> JsonObject:
        holder: JsonObject = {"id": result.id} if result.id else {}
        name = result.name if self._same else self._name(result, place)
        if name is not None:
            holder["name"] = name
        if result.item is not None:
            self._report.lose(result.at, "id of the output item", "gemini has no items", "identity")
        holder["response"] = self._response(result)
        media = self._media_of(result, f"{place}/functionResponse/parts")
        if media:
            holder["parts"] = media
        return {"functionResponse": holder}

    def _name(self, result: ToolResult, place: str) -> str:
        """The name of the function that was called, whatever name the result has."""
        call = self._calls.get(result.id) if result.id else None
        if call is not None:
            if result.name not in (None, call.name):
                self._report.lose(result.at, "name on a result", "it is not the name of its call", "identity")
            return call.name
        if result.name is not None:
            return result.name
        name = result.id or "unknown"
        why = "gemini wants the function's name on a result"
        self._report.add(f"{place}/functionResponse/name", name, why, "identity")
        return name

    def _response(self, result: ToolResult) -> JsonObject:
        if result.structured is not None:
            if result.is_error:
                self._report.lose(result.at, "error flag", "the result has a form of its own", "option")
            return result.structured
        texts = [part for part in result.parts if isinstance(part, Text)]
        if len(texts) > 1:
            self._report.lose(result.at, "where one text ends", "gemini takes one text for a result", "identity")
        if result.parts and not texts and not result.is_error:
            return {}
        return {"error" if result.is_error else "output": plain_text(result.parts)}

    def _media_of(self, result: ToolResult, place: str) -> list[Json]:
        media: list[Json] = []
        for part in result.parts:
            if isinstance(part, Text):
                for citation in part.citations:
                    self._report.lose(citation.at or part.at, "citation", "gemini takes none in a result", "option")
            elif isinstance(part, (Image, Document, Audio, Opaque, CacheBreakpoint)):
                wire = self._part(part, f"{place}/{len(media)}")
                if wire is not None:
                    media.append(restore_extras(wire, part.extras) if self._same and part.extras else wire)
            else:
                self._report.lose(part.at, "part of a result", "gemini takes text and media in a result", "content")
        return media


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body of this request in this dialect; what it cannot express is reported."""
    same = request.dialect == NAME
    messages = request.messages
    if not same:
        _lose_labels(messages, report)
        messages = tuple(message for message in messages if not is_mirrored(message))
    messages = with_policy(messages, target.system, report)
    if not same:
        messages = with_answers(as_turns(messages), report, NAME)
    document: JsonObject = {}
    _write_messages(messages, document, report, same=same)
    if not same and target.facts is not None and target.facts.signed_calls:
        sign_calls(as_list(document["contents"], "/contents"), report)
    tools = write_tools(request, report)
    if tools:
        document["tools"] = tools
    choice = write_choice(request, tools, report)
    if choice is not None:
        set_path(document, ("toolConfig", "functionCallingConfig"), choice)
    if request.parallel_tool_calls is False:
        severity: Severity = "option" if tools else "identity"
        report.lose(request.parallel_at, "one call at a time", "gemini cannot be asked for it", severity)
    write_all(request.options, document, report, same=same)
    return _with_extras(document, request, tools) if same else document


def _with_extras(document: JsonObject, request: Request, tools: list[Json]) -> JsonObject:
    restore_extras(document, request.extras)
    if MODEL in request.extras:
        document[MODEL] = request.model
    if TOOLS in request.extras:
        document[TOOLS] = tools
    return document


def _lose_labels(messages: tuple[Message, ...], report: Report) -> None:
    for message in messages:
        if message.name is not None:
            report.lose(message.at, "name of the speaker", "gemini has no names on contents", "option")
        if message.id is not None:
            report.lose(message.at, "id of the message", "gemini has no ids on contents", "identity")


def _write_messages(messages: tuple[Message, ...], document: JsonObject, report: Report, *, same: bool) -> None:
    writer = ContentWriter(report, same=same)
    count = leading_count(messages)
    last_at = messages[-1].at if messages else ""
    written: list[tuple[Message, list[Json]]] = []
    spoken = 0
    for index, message in enumerate(messages):
        if index < count and message.role == "developer":
            report.lose(message.at, "role developer", "gemini has only a system instruction", "identity")
        parts = writer.parts(message, "/systemInstruction/parts" if index < count else f"/contents/{spoken}/parts")
        if parts or same:
            written.append((message, parts))
            spoken += index >= count
    messages = tuple(message for message, _ in written)
    if not same:
        if not messages:
            report.lose(last_at, "every message", "nothing is left to answer", "content")
        messages = with_user_message(messages, report, NAME)
    count = leading_count(messages)
    instruction = [part for _, parts in written[:count] for part in parts]
    if same and count:
        first = messages[0]
        whole = plain_text(first.parts) if first.bare else restore_extras({"parts": instruction}, first.extras)
        document["systemInstruction"] = whole
    elif count:
        document["systemInstruction"] = {"parts": instruction}
    pairs = zip(messages[count:], written[count:], strict=True)
    document["contents"] = [writer.content(message, parts) for message, (_, parts) in pairs]


def with_joined_thoughts(messages: list[Message], document: Json) -> list[Message]:
    """The messages with each thought whole, directly before the piece that signs it. Pieces may be whole contents."""
    pieces: dict[str, Part] = {}
    wholes: dict[str, Part] = {}
    for run in _runs(messages):
        *words, last = run
        for piece in run:
            pieces[piece.at] = Opaque(NAME, resolve(document, piece.at), mirrored=True, at=piece.at)
        text = "".join(piece.text for piece in words)
        wholes[last.at] = msgspec.structs.replace(last, text=text, at=words[0].at)
    if not wholes:
        return messages
    return [
        msgspec.structs.replace(
            message,
            parts=tuple(
                one
                for part in message.parts
                for one in (wholes.get(part.at), pieces.get(part.at, part))
                if one is not None
            ),
        )
        for message in messages
    ]


def is_followed_by_pieces(parts: tuple[Part, ...], index: int) -> bool:
    """Whether this part is a thought whose pieces follow it."""
    following = parts[index + 1] if index + 1 < len(parts) else None
    return isinstance(parts[index], Thinking) and isinstance(following, Opaque) and following.mirrored


def _runs(messages: list[Message]) -> Iterator[list[Thinking]]:
    """The pieces of each thought: texts without a signature, then a signature without text."""
    run: list[Thinking] = []
    for message in messages:
        if message.role != "assistant":
            run = []
            continue
        for part in message.parts:
            if not isinstance(part, Thinking) or part.redacted or part.extras or part.id == signatures.NEXT:
                run = []
            elif part.signed_by is None:
                run.append(part)
            else:
                if run and not part.text:
                    yield [*run, part]
                run = []
