"""A small dialect that lives outside the package: text alone, in the API of a provider that does not exist.

A request is `{"model", "turns": [{"who", "says"}], "limit", "stream"}`, a reply `{"id", "model", "says", "why",
"counts"}`, and a stream has frames `{"piece"}` and one last frame with all but the text. It shows how little a dialect
needs: what has no default in the record.
"""

from collections.abc import Mapping
from typing import cast, get_args

from sightline.catalog.compose import DialectSupport
from sightline.dialects.conversation import SYSTEM_ROLES, with_policy
from sightline.dialects.dialect import Client, Clients, Dialect, Editing, Endpoint, Problem, Target
from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault
from sightline.dialects.fields import as_object, as_str, compact, merge, opt_int, opt_list, opt_str, rest, unknown
from sightline.dialects.losses import describe, lose_choices, lose_partial
from sightline.dialects.option_table import options_of, read_options, write_options
from sightline.dialects.streaming import Machine, StreamReader
from sightline.dialects.tool_names import ANY_NAME
from sightline.dialects.validity import no_messages
from sightline.errors import Code, Fault
from sightline.model.events import (
    Ended,
    Failed,
    FieldReceived,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    UsageReceived,
)
from sightline.model.fold import Fold
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Refusal, Text
from sightline.model.reply import Finish, Reply, Usage
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame

NAME = "plain"
_ROLES = {"system": "rules", "user": "person", "assistant": "machine"}
_BY_WORD = {word: role for role, word in _ROLES.items()}
_OPTIONS = {"max_tokens": (("limit",),), "stream": (("stream",),)}
_REPLY = frozenset({"id", "model", "says", "why", "counts", "trouble"})


def read_request(document: Json) -> Request:
    body = as_object(document, "")
    messages = []
    for index, value in enumerate(opt_list(body, "turns", "")):
        at = f"/turns/{index}"
        turn = as_object(value, at)
        parts = (Text(as_str(turn.get("says"), f"{at}/says"), at=f"{at}/says"),)
        word = as_str(turn.get("who"), f"{at}/who")
        if word not in _BY_WORD:
            raise unknown(word, f"{at}/who", "a role", _BY_WORD)
        role = _BY_WORD[word]
        messages.append(Message(role, parts, bare=True, at=at, extras=rest(turn, frozenset({"who", "says"}))))  # type: ignore[arg-type] # a role
    options = options_of(*read_options(body, _OPTIONS))
    model = opt_str(body, "model", "") or ""
    extras = rest(body, frozenset({"model", "turns", "limit", "stream"}))
    return Request(model, tuple(messages), options=options, dialect=NAME, extras=extras)


def write_request(request: Request, settings: Target, report: Report) -> Json:
    same = request.dialect == NAME
    turns: list[Json] = []
    for message in with_policy(request.messages, settings.system, report):
        text = _text(message.parts, report)
        if message.role not in _ROLES or message.name is not None:
            report.lose(message.at, f"role or name of a {message.role} message", "plain has neither", "content")
        if not text:
            continue
        who = "rules" if message.role in SYSTEM_ROLES else _ROLES.get(message.role, "person")
        turn: JsonObject = {"who": who, "says": text}
        turns.append(merge(turn, message.extras) if same else turn)
    document: JsonObject = {"model": request.model, "turns": turns}
    write_options(request.options, _OPTIONS, document, report, dialect=NAME, same=same, skip=frozenset())
    for name in ("format", "reasoning"):
        if getattr(request.options, name) is not None:
            report.lose(getattr(request.options, name).at or f"/{name}", name, "plain has no such option", "option")
    for tool in request.tools:
        report.lose(tool.at, "a tool", "plain has no tools", "content")
    if request.tool_choice is not None:
        report.lose(request.tool_choice.at, "the choice of a tool", "plain has no tools", "option")
    if request.parallel_tool_calls is not None:
        report.lose(request.parallel_at, "parallel tool calls", "plain has no tools", "option")
    return merge(document, request.extras) if same else document


def _text(parts: tuple[Part, ...], report: Report) -> str:
    pieces = []
    for part in parts:
        if isinstance(part, Text) and not part.citations and part.signature is None:
            pieces.append(part.text)
            continue
        if isinstance(part, Text | Refusal):
            pieces.append(part.text)
        report.lose(part.at, describe(part), "plain has text alone", "content")
    return "".join(pieces)


def read_reply(document: Json) -> list[StreamEvent]:
    body = as_object(document, "")
    if body.get("trouble") is not None:
        return [*_identity(body, ""), Failed(read_error(0, body, {})), Ended()]
    text = [TextReceived(0, says, at="/says")] if (says := opt_str(body, "says", "")) else []
    return [*_identity(body, ""), *text, *_end(body, ""), Ended()]


def _identity(body: JsonObject, at: str) -> list[StreamEvent]:
    places = {name: f"{at}/{name}" for name in ("id", "model") if body.get(name) is not None}
    return [Started(opt_str(body, "id", at), opt_str(body, "model", at), places=places)] if places else []


def _end(body: JsonObject, at: str) -> list[StreamEvent]:
    events: list[StreamEvent] = [FieldReceived(f"{at}/{key}", value) for key, value in rest(body, _REPLY).items()]
    if body.get("counts") is not None:
        counts = as_object(body["counts"], f"{at}/counts")
        usage = Usage(
            input_tokens=opt_int(counts, "in", at), output_tokens=opt_int(counts, "out", at), at=f"{at}/counts"
        )
        events.append(UsageReceived(usage))
    word = opt_str(body, "why", at)
    if word is not None:
        known = word in get_args(Finish)
        events.append(Finished(cast(Finish, word) if known else "stop", detail=None if known else word, at=f"{at}/why"))
    return events


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return {"trouble": _trouble(reply.fault)}
    return compact({"says": _text(reply.choice.parts, report) or None, **_frame_of(reply, client, report)})


def _frame_of(reply: Reply, client: Client, report: Report) -> JsonObject:
    """All of a reply but its text."""
    choice, usage = reply.choice, reply.usage
    lose_choices(reply, NAME, report)
    if choice.logprobs:
        report.lose(choice.logprobs_at, "logprobs", "plain has none", "content")
    for place, value in ((choice.finish_at, choice.detail), (choice.stop_at, choice.stop_sequence)):
        if value is not None:
            report.lose(place, "why it ended, in detail", "plain has no such field", "identity")
    if "created" in reply.places:
        report.lose(reply.places["created"], "created", "plain has no such field", "identity")
    counts = None
    if usage is not None:
        counts = compact({"in": usage.input_tokens, "out": usage.output_tokens})
        report.lose(usage.at, "finer counts", "plain has two", "identity")
    # Without calls nothing can be answered, so that an answer which ends in calls has stopped.
    why = "stop" if choice.finish in ("tool_calls", None) else choice.finish
    return {
        "id": reply.id or client.id or None,
        "model": reply.model or client.model or None,
        "why": why,
        "counts": counts,
    }


class _Machine(Machine):
    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        at = f"/{index}"
        if document.get("trouble") is not None:
            return [Failed(read_error(0, document, {}))]
        if (piece := opt_str(document, "piece", at)) is not None:
            return [TextReceived(0, piece)]
        self.is_over = "why" in document
        return [*_identity(document, at), *_end(document, at)]


class _Writer:
    """Text is sent as it comes, all else in the last frame; what is lost is then what the whole reply would lose."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._fold = Fold(NAME)

    def feed(self, event: StreamEvent) -> bytes:
        self._fold.add(event)
        if isinstance(event, Failed):
            return _frame({"trouble": _trouble(event.fault)})
        if isinstance(event, Ended) and self._fold.reply.fault is None:
            _text(self._fold.reply.choice.parts, self._report)
            return _frame(compact(_frame_of(self._fold.reply, self._client, self._report)))
        text = getattr(event, "text", "") if not getattr(event, "choice", 0) else ""
        is_said = type(event).__name__ in ("TextReceived", "RefusalReceived") and text
        return _frame({"piece": text}) if is_said else b""


def _frame(document: JsonObject) -> bytes:
    return encode_frame(Frame(encode(document)))


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    error = body.get("trouble") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return provider_fault(status, body if isinstance(body, str) else "", details=body, headers=headers)
    code = next((each for each in Code if each.value == error.get("kind")), Code.UPSTREAM_ERROR)
    return Fault(code, str(error.get("text", "")), status=status or None)


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    return status_of(fault), {"trouble": _trouble(fault)}


def _trouble(fault: Fault) -> JsonObject:
    return {"kind": fault.code.value, "text": fault.message}


def problems(request: Request) -> list[Problem]:
    return list(no_messages(request, "/turns"))


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(_Machine()),
    stream_writer=_Writer,
    owns_frame=lambda frame: "piece" in frame,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    names=ANY_NAME,
    endpoint=Endpoint(path="/plain/turns", version="/v1", credential=("x-plain-key", "")),
    clients=Clients(headers=frozenset({"x-plain-key"})),
    support=DialectSupport(options=frozenset({"max_tokens"}), summaries=("none",)),
    editing=Editing(container="turns", parts_key="says", roles=_ROLES, text_part=lambda _role, text: {"says": text}),
)
