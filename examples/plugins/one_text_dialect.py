"""A dialect that resembles no built-in one: a request is `{"model", "prompt"}`, a reply `{"answer"}`.

    [plugins]
    use = ["one_text_dialect.py"]

    [providers.tiny]
    dialect = "one-text"
    base_url = "http://127.0.0.1:9000"

The whole conversation becomes one text, so all that a text cannot say is reported as lost. The API has no streams:
those of Chat Completions serve clients that want one, with no more in them than a whole reply has.
"""

from collections.abc import Mapping

from sightline.catalog.compose import DialectSupport
from sightline.dialects.conversation import with_policy
from sightline.dialects.dialect import Client, Clients, Dialect, Editing, Endpoint, Problem, Target
from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault
from sightline.dialects.fields import as_object, as_str, merge, opt_str, rest
from sightline.dialects.losses import describe, lose_choices, lose_partial
from sightline.dialects.option_table import Table, options_of, read_options, write_options
from sightline.dialects.registry import dialect
from sightline.dialects.tool_names import ANY_NAME
from sightline.dialects.validity import no_messages
from sightline.errors import Code, Fault
from sightline.model.events import (
    Ended,
    Failed,
    FieldReceived,
    Finished,
    RefusalReceived,
    Started,
    StreamEvent,
    TextReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Refusal, Text
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.plugins import Plugin

NAME = "one-text"
CHAT = dialect("openai-chat")
_OPTIONS: Table = {}


def read_request(document: Json) -> Request:
    """The prompt as the one message of the user."""
    body = as_object(document, "")
    text = Text(as_str(body.get("prompt"), "/prompt"), at="/prompt")
    return Request(
        opt_str(body, "model", "") or "",
        (Message("user", (text,), bare=True, at="/prompt"),),
        options=options_of(*read_options(body, _OPTIONS)),
        dialect=NAME,
        extras=rest(body, frozenset({"model", "prompt"})),
    )


def write_request(request: Request, target: Target, report: Report) -> Json:
    """All messages as one text. Whose words they were is lost."""
    same = request.dialect == NAME
    pieces: list[str] = []
    for message in with_policy(request.messages, target.system, report):
        if message.role != "user" or message.name is not None:
            report.lose(message.at, f"role or name of a {message.role} message", f"{NAME} has one text", "content")
        pieces.append(_text(message.parts, report))
    document: JsonObject = {"model": request.model, "prompt": "\n\n".join(filter(None, pieces))}
    write_options(request.options, _OPTIONS, document, report, dialect=NAME, same=same)
    for name, value in (("format", request.options.format), ("reasoning", request.options.reasoning)):
        if value is not None:
            report.lose(value.at or f"/{name}", name, f"{NAME} has no such option", "option")
    for tool in request.tools:
        report.lose(tool.at, "a tool", f"{NAME} has no tools", "content")
    if request.tool_choice is not None:
        report.lose(request.tool_choice.at, "the choice of a tool", f"{NAME} has no tools", "option")
    if request.parallel_tool_calls is not None:
        report.lose(request.parallel_at, "parallel tool calls", f"{NAME} has no tools", "option")
    return merge(document, request.extras) if same else document


def _text(parts: tuple[Part, ...], report: Report) -> str:
    pieces = []
    for part in parts:
        if isinstance(part, Text | Refusal):
            pieces.append(part.text)
        if not isinstance(part, Text) or part.citations or part.signature is not None:
            report.lose(part.at, describe(part), f"{NAME} has text alone", "content")
    return "".join(pieces)


def read_reply(document: Json) -> list[StreamEvent]:
    """The answer as one text."""
    body = as_object(document, "")
    if body.get("error") is not None:
        return [Failed(read_error(0, body, {})), Ended()]
    answer = as_str(body.get("answer"), "/answer")
    fields = [FieldReceived(f"/{key}", value) for key, value in rest(body, frozenset({"answer", "error"})).items()]
    return [TextReceived(0, answer, at="/answer"), *fields, Finished("stop"), Ended()]


def write_reply(reply: Reply, _client: Client, report: Report) -> JsonObject:
    """The text of a reply; how it ended and what it cost have no place."""
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return {"error": reply.fault.message}
    lose_choices(reply, NAME, report)
    choice = reply.choice
    if choice.logprobs:
        report.lose(choice.logprobs_at, "logprobs", f"{NAME} has none", "content")
    if choice.finish not in ("stop", None) or choice.detail is not None or choice.stop_sequence is not None:
        report.lose(choice.finish_at, "why it ended", f"{NAME} has no such field", "option")
    if reply.usage is not None:
        report.lose(reply.usage.at, "counts", f"{NAME} has none", "identity")
    for place in reply.places.values():
        report.lose(place, place.removeprefix("/"), f"{NAME} has no such field", "identity")
    return {"answer": _text(choice.parts, report)}


class _Writer:
    """A stream of Chat Completions with no more than a whole reply has: text, and no reason why it ended."""

    def __init__(self, client: Client, report: Report) -> None:
        self._writer = CHAT.stream_writer(client, report)
        self._report = report

    def feed(self, event: StreamEvent) -> bytes:
        match event:
            case Finished(finish="stop", detail=None) | Started() | TextReceived(choice=0) | Failed() | Ended():
                return self._writer.feed(event)
            case Finished():
                self._report.lose(event.at, "why it ended", f"{NAME} has no such field", "option")
                return self._writer.feed(Finished("stop"))
            case RefusalReceived(choice=0):
                self._report.lose(event.at, "a refusal", f"{NAME} has text alone", "content")
                return self._writer.feed(TextReceived(event.part, event.text))
            case _:
                self._report.lose(getattr(event, "at", ""), "a part of the reply", f"{NAME} has text alone", "content")
                return b""


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """An error is `{"error": "its message"}`."""
    message = body.get("error") if isinstance(body, dict) else None
    if not isinstance(message, str):
        return provider_fault(status, body if isinstance(body, str) else "", details=body, headers=headers)
    return Fault(Code.UPSTREAM_ERROR, message, status=status or None)


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and the message."""
    return status_of(fault), {"error": fault.message}


def problems(request: Request) -> list[Problem]:
    """A prompt is required."""
    return list(no_messages(request, "/prompt"))


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=CHAT.stream_reader,
    stream_writer=_Writer,
    owns_frame=CHAT.owns_frame,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    names=ANY_NAME,
    endpoint=Endpoint(path="/answer", credential=("authorization", "Bearer ")),
    clients=Clients(),
    support=DialectSupport(options=frozenset(), summaries=("none",)),
    editing=Editing(
        container="prompt", parts_key="", roles={"user": "user"}, text_part=lambda _role, text: {"x": text}
    ),
)

PLUGIN = Plugin(name="one-text", dialects=(DIALECT,))
