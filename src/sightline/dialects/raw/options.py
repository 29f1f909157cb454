"""The options and tools of a raw request, which are in `requestOptions` in the shapes of Chat Completions.

They are read and written by that dialect's own functions, on the inner object alone; the pointers are then shifted to
where it stands, so that there is one table of options and not two.
"""

from collections.abc import Callable

import msgspec

from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_object, compact
from sightline.dialects.openai_chat.names import NAME as CHAT
from sightline.dialects.openai_chat.request_read import read_request as read_chat
from sightline.dialects.openai_chat.request_write import write_request as write_chat
from sightline.dialects.raw.names import NAME, OPTIONS
from sightline.errors import Fault
from sightline.model.json import JsonObject
from sightline.model.options import Options
from sightline.model.report import Report
from sightline.model.request import Request

_AT = f"/{OPTIONS}"
_ELSEWHERE = frozenset({"model", "messages"})


def read_settings(holder: JsonObject) -> Request:
    """Everything but model and messages, which a raw request has elsewhere; those names are unknown here."""
    known = {key: value for key, value in holder.items() if key not in _ELSEWHERE}
    try:
        read = read_chat({**known, "messages": []})
    except Fault as fault:
        raise _shift_fault(fault) from None
    if read.parallel_tool_calls is not None:
        read.options.places["parallel_tool_calls"] = read.parallel_at
    aside = {key: value for key, value in holder.items() if key in _ELSEWHERE}
    return _shift_pointers(read, _down, NAME, {**read.extras, **aside})


def write_settings(request: Request, report: Report, *, same: bool) -> JsonObject:
    """The inner object of these options and tools, empty where there are none."""
    inner = Report()
    kept = request.extras.get(OPTIONS) if same else None
    extras = kept if isinstance(kept, dict) else {}
    options = request.options
    if same:
        source = _shift_pointers(
            request, _up, CHAT, {key: value for key, value in extras.items() if key not in _ELSEWHERE}
        )
    else:  # no server stands behind this wire: none refuses top_k or a fifth stop text, none must be asked for counts
        unlimited = msgspec.structs.replace(options, top_k=None, stop=None, stream=None)
        source = msgspec.structs.replace(_shift_pointers(request, str, "", {}), options=unlimited)
    source = msgspec.structs.replace(source, model="", messages=())
    document = as_object(write_chat(source, Target(), inner), "")
    del document["messages"]
    document |= compact({"top_k": options.top_k, "stream": options.stream})
    if options.stop is not None:
        document["stop"] = list(options.stop)
    for loss in inner.losses:
        report.lose(loss.pointer, loss.what, loss.why.replace(CHAT, NAME), loss.severity)
    for addition in inner.additions:
        report.add(_AT + addition.pointer, addition.what, addition.why.replace(CHAT, NAME), addition.severity)
    return document | {key: value for key, value in extras.items() if key in _ELSEWHERE}


def _down(at: str) -> str:
    return _AT + at


def _up(at: str) -> str:
    return at.removeprefix(_AT)


def _shift_pointers(request: Request, move: Callable[[str], str], dialect: str, extras: JsonObject) -> Request:
    """The same settings with every pointer moved."""
    choice = request.tool_choice
    return msgspec.structs.replace(
        request,
        tools=tuple(msgspec.structs.replace(tool, at=move(tool.at)) for tool in request.tools),
        tool_choice=None if choice is None else msgspec.structs.replace(choice, at=move(choice.at)),
        options=_shift_option_pointers(request.options, move),
        dialect=dialect,
        extras=extras,
    )


def _shift_option_pointers(options: Options, move: Callable[[str], str]) -> Options:
    form, reasoning = options.format, options.reasoning
    if form is not None:
        form = msgspec.structs.replace(form, at=move(form.at))
    if reasoning is not None:
        places = {name: move(at) for name, at in reasoning.places.items()}
        reasoning = msgspec.structs.replace(reasoning, at=move(reasoning.at), places=places)
    places = {name: move(at) for name, at in options.places.items()}
    return msgspec.structs.replace(options, format=form, reasoning=reasoning, places=places)


def _shift_fault(fault: Fault) -> Fault:
    """A fault about the inner object, at its place in the whole."""
    pointer = fault.pointer or ""
    message = _AT + fault.message if pointer and fault.message.startswith(pointer) else fault.message
    return Fault(fault.code, message, hint=fault.hint, pointer=_AT + pointer)
