"""Make a case from a recording: as a value, as YAML, and with the files that it names."""

from collections.abc import Callable, Sequence

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.making.case_writer import CaseWriter, MadeFile, Omission, Placeholders, slug
from sightline.evals.core.reading.yaml_edit import document_text
from sightline.model.json import Json, JsonObject
from sightline.model.parts import ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.request import Message, Request, Tool, of_message
from sightline.wire import jsontext


class CaseExchange(msgspec.Struct, frozen=True):
    """An exchange from which a case is made: the request, and its reply if there was one."""

    request: Request
    reply: Reply | None = None

    @property
    def answer(self) -> tuple[Message, ...]:
        """The reply as a message of the conversation; empty if there is none or it was interrupted."""
        if self.reply is None or self.reply.fault is not None or not self.reply.choice.parts:
            return ()
        return (Message("assistant", self.reply.choice.parts),)


class RecordedTurn(msgspec.Struct, frozen=True):
    """What the user says, and everything that follows until the user's next message."""

    question: tuple[Message, ...]
    answered: tuple[Message, ...]


class Conversation(msgspec.Struct, frozen=True):
    """The messages that were sent, the last reply, and how many earlier messages are no longer among them.

    `is_continued`: the provider stores a beginning that is not in these messages.
    """

    messages: tuple[Message, ...]
    answer: tuple[Message, ...]
    forgotten: int = 0
    is_continued: bool = False


def join_exchanges(exchanges: Sequence[CaseExchange]) -> Conversation:
    """Join exchanges, given in their order, into one conversation.

    A client sends the whole conversation each time, so the last request contains all of it, unless the provider stores
    it: then the earlier messages are put in front.
    """
    messages: tuple[Message, ...] = ()
    answer: tuple[Message, ...] = ()
    forgotten = 0
    is_continued = False
    for place, exchange in enumerate(exchanges):
        own = exchange.request.messages
        if exchange.request.options.previous_response_id is not None:
            is_continued = is_continued or place == 0
            messages = (*messages, *answer, *own)
        else:
            sent = {_key(message) for message in own}
            forgotten += sum(_key(message) not in sent for message in messages if message.role != "system")
            messages, is_continued = own, False
        answer = exchange.answer
    return Conversation(messages, answer, forgotten, is_continued)


def turns_of(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[RecordedTurn, ...]]:
    """The messages before the user's first one, and the turns."""
    starts = [
        place
        for place, message in enumerate(messages)
        if is_users(message) and not (place and is_users(messages[place - 1]))
    ]
    turns = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(messages)
        answer_start = next((place for place in range(start, end) if not is_users(messages[place])), end)
        turns.append(RecordedTurn(tuple(messages[start:answer_start]), tuple(messages[answer_start:end])))
    return tuple(messages[: starts[0]] if starts else messages), tuple(turns)


def is_users(message: Message) -> bool:
    """Whether the message is the user's own: on some wires, tool results have the role of the user."""
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def _key(message: Message) -> bytes:
    return jsontext.encode(msgspec.to_builtins(of_message(message)))


def behind_calls(messages: Sequence[JsonObject], leave: Callable[[str, str], None]) -> list[JsonObject]:
    """The messages in an order that can be sent: each call followed by its one result. Changes are reported."""
    results: dict[str, int] = {}
    for place, message in enumerate(messages):
        name = _call_id_of(message)
        if name and results.setdefault(name, place) != place:
            leave("a second result of a call", "a call has one")
    made: list[JsonObject] = []
    placed: set[str] = set()
    for place, message in enumerate(messages):
        calls = _calls(message)
        answered = [call for call in calls if results.get(str(call["id"]), -1) > place]
        if not calls:
            if _call_id_of(message) not in placed:
                made.append(message)
            continue
        for call in calls:
            if call not in answered:
                leave(f"a call of {call['name']}", "it has no result, and no provider takes one without")
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        if answered:
            made.append({**message, "tool_calls": list[Json](answered)})
        elif "content" in rest:
            made.append(rest)
        places = sorted(results[str(call["id"])] for call in answered)
        if places and places[-1] > place + len(places):
            leave("the place of a result", "it stands right behind its call, as providers want it")
        made += [messages[each] for each in places]
        placed |= {_call_id_of(messages[each]) for each in places}
    return made


def _call_id_of(message: JsonObject) -> str:
    found = message.get("tool_call_id")
    return found if isinstance(found, str) else ""


def _calls(message: JsonObject) -> list[JsonObject]:
    found = message.get("tool_calls")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


TO_BE_WRITTEN = "Say here what a good answer does."
AS_RECORDED = "Each answer does for the user what the expected one does."


class MadeCase(msgspec.Struct, frozen=True):
    """`case` is the value for a suite's `tests`, `text` a suite with only this case. `files` belong beside the suite,
    `left` is what the case lacks of the recording."""

    case: JsonObject
    text: str
    files: tuple[MadeFile, ...]
    left: tuple[Omission, ...]


def make_case(
    exchanges: Sequence[CaseExchange],
    name: str,
    mask: Callable[[str], str],
    *,
    from_turn: int | None = None,
    contains: str = "",
) -> MadeCase:
    """Make a case from one exchange, or from several exchanges of one conversation.

    Without `from_turn`, it asks exactly what the last request asked, and the reply is the expected output; with
    `contains`, the answer must contain this text. With `from_turn`, the conversation up to that turn (counted from 1)
    is fixed, and from there on the user's turns are held live. Raises a `Fault` if there is no exchange or no such
    turn.
    """
    if not exchanges:
        raise Fault(Code.USAGE, "there is no exchange to make a case of", hint="Name at least one exchange.")
    conversation = join_exchanges(exchanges)
    placeholders = Placeholders()
    writer = CaseWriter(slug(name) or "case", mask, placeholders)
    content = _one(conversation, writer, contains) if from_turn is None else _live(conversation, writer, from_turn)
    request = exchanges[-1].request
    metadata = _metadata(request, writer)
    _report_omissions(conversation, request, writer)
    case: JsonObject = {"id": slug(name) or "case"}
    if placeholders.variables:
        case["vars"] = dict(placeholders.variables)
    case |= content
    if request.tools:
        definitions = writer.mask_secrets([msgspec.to_builtins(_portable_tool(tool, writer)) for tool in request.tools])
        data = msgspec.json.format(jsontext.encode(definitions), indent=2) + b"\n"
        case["tools"] = writer.keep("tools.json", data)
    if metadata:
        case["metadata"] = metadata
    return MadeCase(case, document_text({"tests": [case]}), writer.files, writer.left)


def _one(conversation: Conversation, writer: CaseWriter, contains: str) -> JsonObject:
    content: JsonObject = {"input": _input(behind_calls(writer.messages(conversation.messages), writer.leave))}
    content |= _reference_answer(conversation.answer, writer, is_graded=True)
    if contains:
        graders = content.get("assertions", [])
        assert isinstance(graders, list)
        content["assertions"] = [*graders, {"type": "contains", "value": writer.mask_secrets(contains)}]
    return content


def _live(conversation: Conversation, writer: CaseWriter, from_turn: int) -> JsonObject:
    before, turns = turns_of((*conversation.messages, *conversation.answer))
    if not 1 <= from_turn <= len(turns):
        raise Fault(
            Code.USAGE,
            f"the conversation has no turn {from_turn}",
            hint=f"Give a turn from 1 to {len(turns)}." if turns else "It has no message of the user.",
        )
    fixed = [*before, *(message for turn in turns[: from_turn - 1] for message in (*turn.question, *turn.answered))]
    history = behind_calls(writer.messages(fixed), writer.leave)
    live = [_turn(turn, writer) for turn in turns[from_turn - 1 :]]
    is_answered = any("expected_output" in turn for turn in live)
    made: JsonObject = {"mode": "conversation", "criteria": AS_RECORDED if is_answered else TO_BE_WRITTEN}
    if history:
        made["input"] = _input(history)
    return made | {"turns": list(live)}


def _turn(turn: RecordedTurn, writer: CaseWriter) -> JsonObject:
    content: JsonObject = {"input": _input(writer.messages(turn.question))}
    return content | _reference_answer(turn.answered, writer, is_graded=False)


def _input(messages: list[JsonObject]) -> Json:
    """The messages as `input`. A single user message that is plain text is written as text."""
    if len(messages) == 1 and messages[0].keys() == {"role", "content"} and messages[0]["role"] == "user":
        content = messages[0]["content"]
        if isinstance(content, str):
            return content
    return list(messages)


def _reference_answer(answer: Sequence[Message], writer: CaseWriter, *, is_graded: bool) -> JsonObject:
    """The reply as the expected output; if it has tool calls, a grader for them is proposed as well."""
    written = writer.messages(answer)
    messages = [each for each in written if each["role"] in ("assistant", "tool")]
    if len(messages) < len(written):
        writer.leave("what was said between results of tools", "it is not the model's to say")
    if not messages:
        return {"criteria": TO_BE_WRITTEN} if is_graded else {}
    first = messages[0]
    if len(messages) == 1 and first.keys() == {"role", "content"} and isinstance(first["content"], str):
        return {"expected_output": first["content"]}
    made: JsonObject = {"expected_output": list(messages)}
    calls: list[Json] = [{"tool": part.name} for each in answer for part in each.parts if isinstance(part, ToolCall)]
    if calls:
        made["assertions"] = [{"type": "tool-trajectory", "mode": "in_order", "expected": calls}]
    return made


def _portable_tool(tool: Tool, writer: CaseWriter) -> Tool:
    """A tool without the fields of one provider, so that a case can declare it to any model."""
    if tool.extras:
        what = f"{', '.join(tool.extras)} of the tool {getattr(tool, 'name', '')}".rstrip()
        writer.leave(what, "only the provider of the recording knows it")
    return msgspec.structs.replace(tool, at="", extras={}, cache=None)


def _metadata(request: Request, writer: CaseWriter) -> JsonObject:
    """The settings of the recorded request. A target may use others, so these are for the user's information."""
    options = request.options
    metadata: JsonObject = {
        "model": request.model,
        "dialect": request.dialect,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_tokens": options.max_tokens,
        "effort": options.reasoning.effort if options.reasoning else None,
        "tools": [getattr(tool, "name", "") or "a server tool" for tool in request.tools],
    }
    recorded: JsonObject = {
        key: writer.mask_secrets(value) for key, value in metadata.items() if value not in (None, "", [])
    }
    return {"recorded": recorded} if recorded else {}


def _report_omissions(conversation: Conversation, request: Request, writer: CaseWriter) -> None:
    if conversation.is_continued:
        writer.leave("the beginning of the conversation", "the provider holds it; the request only names it")
    if conversation.forgotten:
        many = conversation.forgotten
        writer.leave(f"{many} earlier message{'s' if many > 1 else ''}", "the last request no longer has them")
    if request.options.format is not None:
        writer.leave("the form of the answer", "a suite cannot ask for one; set it for the target")
