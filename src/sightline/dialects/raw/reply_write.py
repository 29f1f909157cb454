"""Writing a whole raw reply: an assistant message, how it ended, and what it took."""

from sightline.dialects.dialect import Client
from sightline.dialects.fields import compact
from sightline.dialects.openai_chat.choices import CallIds, write_token
from sightline.dialects.openai_chat.usage import write_usage
from sightline.dialects.raw.content import ContentWriter
from sightline.dialects.raw.errors import error_object
from sightline.dialects.raw.finishes import write_finish
from sightline.dialects.raw.names import MARKER, NAME, ROLE_NUMBERS
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob
from sightline.model.report import Report


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as an assistant message; one that failed has its parts so far and the error."""
    reply_id = reply.id or client.id
    first, *others = [_write_choice(choice, index, reply_id, report) for index, choice in enumerate(reply.choices)]
    document = first | compact(
        {
            "usage": None if reply.usage is None else write_usage(reply.usage, report),
            "model": reply.model or client.model or None,
            "id": reply.id or client.id or None,
            "created": reply.created or client.created or None,
            MARKER: reply.marker,
        }
    )
    if others:
        document["others"] = list(others)
    if reply.fault is not None:
        document["error"] = error_object(reply.fault)
    return document


def _write_choice(choice: Choice, index: int, reply_id: str, report: Report) -> JsonObject:
    writer, ids = ContentWriter(report, same=False), CallIds(index)
    content: list[Json] = []
    calls: list[Json] = []
    for part in choice.parts:
        if isinstance(part, ToolCall):
            if not part.id:
                note_call_id(index, len(calls), report)
            calls.append(writer.call(part, ids.of(part.id, len(calls), reply_id)))
        elif isinstance(part, Opaque) and part.dialect == NAME and "/toolCalls/" in part.at:
            calls.append(part.value)
        else:
            if calls:
                lose_order(part.at, report)
            content.append(writer.part(part))
    document: JsonObject = {"role": ROLE_NUMBERS["assistant"], "content": content}
    if calls:
        document["toolCalls"] = calls
    if choice.logprobs:
        document["logprobs"] = write_logprobs(choice.logprobs)
    return document | write_finish(choice.finish, choice.detail, choice.stop_sequence)


def note_call_id(choice: int, number: int, report: Report) -> None:
    """List an id that was made for a call which came without one."""
    holder = f"/others/{choice - 1}" if choice else ""
    report.add(
        f"{holder}/toolCalls/{number}/id", "id of a tool call", "a call and its result must share an id", "identity"
    )


def lose_order(at: str, report: Report) -> None:
    """Report a part that stood behind a call."""
    report.lose(at, "order of words and calls", f"{NAME} holds calls behind the content", "content")


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> JsonObject:
    """How likely the tokens were."""
    return {"content": [write_token(token) for token in tokens]}
