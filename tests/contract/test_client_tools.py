"""Tools that the client runs are tool calls everywhere: shown, held, edited, translated and given back as they were."""

import json
from pathlib import Path

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.translate import StreamTranslation, translate_reply, translate_request
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, SetText
from sightline.editing.validity import Validity, check_draft
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.exchange import ExchangeFinished
from sightline.model.fold import fold
from sightline.model.report import Report
from sightline.wire.jsontext import decode
from sightline.wire.sse import SseDecoder
from tests.contract.cases import ROOT
from tests.holding import JSON, SSE, asking, held, let_go
from tests.relay_stage import asks, open_stage
from tests.reply_samples import heard
from tests.stepping_clock import SteppingClock
from tests.upstream import answer

RESPONSES = "openai-responses"
CASE = ROOT / RESPONSES / "client-tools"
REQUEST, REPLY, STREAM = ((CASE / name).read_bytes() for name in ("request.json", "reply.json", "stream.sse"))
KINDS = ["local_shell", "shell", "apply_patch", "computer", "tool_search", "sql"]
OTHERS = ["openai-chat", "anthropic", "gemini", "raw"]


def judged(draft: Draft) -> Validity:
    return check_draft(draft, facts=Facts())


# --- in a request ---


def test_every_call_and_every_result_has_its_section() -> None:
    sections = [each for each in Draft.of(REQUEST, RESPONSES).sections if each.kind in ("tool_call", "tool_result")]
    assert [each.parts[0].name for each in sections if each.kind == "tool_call"] == KINDS[:-1]
    results = [each for each in sections if each.kind == "tool_result"]
    assert [each.answers[0].name for each in results] == KINDS[:-1]
    assert [each.parts[0].call_id for each in results] == ["call_l1", "call_s2", "call_p3", "call_c4", "call_t5"]
    assert all(each.editable for each in sections if each.answers == () or each.answers[0].name != "computer")


@pytest.mark.parametrize("place", range(1, 11))
def test_a_call_and_its_result_go_together(place: int) -> None:
    draft = Draft.of(REQUEST, RESPONSES)
    section = next(each for each in draft.sections if each.pointer == f"/input/{place}")
    after = draft.with_edit(Delete(section=section.id))
    assert judged(after).ok
    pair = (place - 1) // 2
    left = [
        item for index, item in enumerate(json.loads(REQUEST)["input"]) if index not in (2 * pair + 1, 2 * pair + 2)
    ]
    assert json.loads(after.data)["input"] == left


@pytest.mark.parametrize(
    ("place", "text", "field"),
    [
        (1, '{"type":"exec","command":["true"],"env":{}}', "action"),
        (2, "fine", "output"),
        (3, '{"commands":["true"]}', "action"),
        (4, '[{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]', "output"),
        (5, '{"type":"delete_file","path":"app.py"}', "operation"),
        (6, "done", "output"),
        (7, '{"type":"wait"}', "action"),
        (9, '{"goal":"test"}', "arguments"),
        (10, "[]", "tools"),
    ],
)
def test_an_edit_changes_the_action_or_the_output_and_nothing_else(place: int, text: str, field: str) -> None:
    draft = Draft.of(REQUEST, RESPONSES)
    section = next(each for each in draft.sections if each.pointer == f"/input/{place}")
    document = json.loads(REQUEST)
    held = document["input"][place][field]
    assert section.text == held if isinstance(held, str) else json.loads(section.text) == held
    after = draft.with_edit(SetText(section=section.id, text=text))
    document["input"][place][field] = text if isinstance(held, str) else json.loads(text)
    assert json.loads(after.data) == document
    assert after.data.startswith(REQUEST[: REQUEST.index(b'"local_shell_call"')])


def test_a_call_without_an_action_is_refused() -> None:
    draft = Draft.of(REQUEST, RESPONSES)
    (shell,) = [each for each in draft.sections if each.pointer == "/input/3"]
    after = draft.with_edit(SetText(section=shell.id, text='"ls"'))
    assert [(each.pointer, each.severity) for each in judged(after).problems] == [("/input/3", "error")]


# --- in a reply ---


@pytest.mark.parametrize("data", [REPLY, STREAM])
def test_a_reply_that_asks_the_client_to_run_something_ends_with_tool_calls(data: bytes) -> None:
    reply = heard(RESPONSES, data)
    assert reply.choice.finish == "tool_calls"
    assert [call.name for call in reply.choice.tool_calls] == KINDS
    assert json.loads(reply.choice.tool_calls[1].arguments)["commands"] == ["make test"]


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_no_other_dialect_takes_the_calls_for_a_plain_stop(target: str, is_stream: bool) -> None:
    if is_stream:
        translation = StreamTranslation(RESPONSES, target)
        data = translation.feed(STREAM) + translation.close()
    else:
        data = translate_reply(REPLY, RESPONSES, target).data
    again = heard(target, data)
    assert again.choice.finish == "tool_calls"
    assert [call.name.rpartition("__")[2] for call in again.choice.tool_calls] == KINDS
    expected = [json.loads(call.arguments) for call in heard(RESPONSES, REPLY).choice.tool_calls[:5]]
    assert [json.loads(call.arguments) for call in again.choice.tool_calls[:5]] == expected


def test_a_shell_that_ran_in_a_container_leaves_nothing_to_do() -> None:
    reply = json.loads(REPLY)
    call = {**reply["output"][1], "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    output = {"type": "shell_call_output", "id": "sho", "call_id": "call_b", "output": []}
    folded = heard(RESPONSES, json.dumps({**reply, "output": [call, output]}).encode())
    assert (folded.choice.finish, folded.choice.tool_calls) == ("stop", ())


# --- there and back ---


def answered() -> list[StreamEvent]:
    """What a model says that knows these tools as functions only."""
    events: list[StreamEvent] = [Started("r_1", "m")]
    for number, call in enumerate(heard(RESPONSES, REPLY).choice.tool_calls[:5]):
        events += [
            ToolCallBegun(number, f"c{number}", call.name),
            ArgumentsReceived(number, call.arguments),
            ToolCallCompleted(number),
        ]
    return [*events, Finished("tool_calls"), Ended()]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("provider", OTHERS)
def test_function_call_is_translated_back_to_its_original_item(provider: str, is_stream: bool) -> None:
    request = dialect(RESPONSES).read_request(decode(REQUEST))
    client = Client(id="resp_1", model="m")
    if is_stream:
        writer = dialect(provider).stream_writer(Client(id="r", model="m"), Report())
        data = b"".join(writer.feed(event) for event in answered())
        translation = StreamTranslation(provider, RESPONSES, client=client, request=request)
        frames = SseDecoder().feed(translation.feed(data) + translation.close())
        events = [TypeAdapter(ResponseStreamEvent).validate_json(frame.data) for frame in frames]
        items = json.loads(frames[-1].data)["response"]["output"]
        assert events[-1].type == "response.completed"
    else:
        body = dialect(provider).write_reply(fold(answered()), Client(id="r", model="m"), Report())
        data = translate_reply(json.dumps(body).encode(), provider, RESPONSES, client=client, request=request).data
        Response.model_validate_json(data)
        items = json.loads(data)["output"]
    expected = json.loads(REPLY)["output"][:5]
    assert [item["type"] for item in items] == [item["type"] for item in expected]
    for item, origin, field in zip(
        items, expected, ("action", "action", "operation", "actions", "arguments"), strict=True
    ):
        assert item[field] == origin[field]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "gemini"])
def test_a_built_in_tool_is_offered_as_a_function_and_the_choice_of_it_stays(target: str) -> None:
    translation = translate_request(REQUEST, RESPONSES, target)
    read = dialect(target).read_request(decode(translation.data))
    names = [getattr(tool, "name", "") for tool in read.tools]
    assert names == [*KINDS, "deploy"]
    assert read.tool_choice.names == ("apply_patch",)
    added = [addition.what for addition in translation.report.additions]
    assert "description and schema of the built-in tool 'shell'" in added


def test_a_function_of_the_same_name_keeps_it() -> None:
    body = {
        "model": "m",
        "input": "hi",
        "tools": [{"type": "shell"}, {"type": "function", "name": "shell", "parameters": {"type": "object"}}],
    }
    translation = translate_request(json.dumps(body).encode(), RESPONSES, "anthropic")
    assert [tool["name"] for tool in json.loads(translation.data)["tools"]] == ["shell_tool", "shell"]


# --- held ---

CALLS = [{"filter": "", "phase": "tool_calls"}]


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_are_held_before_the_client_sees_the_first(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path, RESPONSES, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, STREAM if stream else REPLY, SSE if stream else JSON)]
        async with asking(stage, asks(RESPONSES, stream=stream)) as (client,):
            hold = await held(stage)
            assert [each.parts[0].name for each in hold.draft.sections] == KINDS
            shell, patch = hold.draft.sections[1], hold.draft.sections[2]
            stage.relay.holds.edit("x_1", SetText(section=shell.id, text='{"commands":["true"]}'))
            hold = stage.relay.holds.edit("x_1", Delete(section=patch.id))
            let_go(stage, hold)
        got = client.result()
        if stream:
            frames = SseDecoder().feed(got.body)
            for frame in frames:
                TypeAdapter(ResponseStreamEvent).validate_json(frame.data)
            output = json.loads(frames[-1].data)["response"]["output"]
        else:
            Response.model_validate_json(got.body)
            output = json.loads(got.body)["output"]
        expected = json.loads(REPLY)["output"]
        expected[1]["action"] = {"commands": ["true"]}
        del expected[2]
        assert output == expected
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert last.finish == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_that_were_only_looked_at_pass_as_they_came(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path, RESPONSES, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, STREAM if stream else REPLY, SSE if stream else JSON)]
        async with asking(stage, asks(RESPONSES, stream=stream)) as (client,):
            let_go(stage, await held(stage))
        assert client.result().body == (STREAM if stream else REPLY)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_knows_functions_only_serves_a_client_of_these_tools(
    tmp_path: Path, stream: bool
) -> None:
    """The whole way: the tools go out as functions, their calls are held and edited, and come back as items."""
    writing = dialect("anthropic")
    writer = writing.stream_writer(Client(id="msg_1", model="m"), Report())
    whole = json.dumps(writing.write_reply(fold(answered()), Client(id="msg_1", model="m"), Report())).encode()
    reply = b"".join(writer.feed(event) for event in answered()) if stream else whole
    async with open_stage(tmp_path, "anthropic", clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, reply, SSE if stream else JSON)]
        body = json.dumps({**json.loads(REQUEST), "model": "m", "stream": stream}).encode()
        async with asking(stage, asks(RESPONSES, stream=stream, body=body)) as (client,):
            hold = await held(stage)
            assert [each.parts[0].name for each in hold.draft.sections] == KINDS[:-1]
            let_go(stage, stage.relay.holds.edit("x_1", SetText(section="s2", text='{"commands":["true"]}')))
        sent = json.loads(stage.upstream.seen[0].body)
        assert [tool["name"] for tool in sent["tools"]] == [*KINDS, "deploy"]
        got = client.result().body
        output = (
            json.loads(SseDecoder().feed(got)[-1].data)["response"]["output"] if stream else json.loads(got)["output"]
        )
        assert [item["type"] for item in output] == [item["type"] for item in json.loads(REPLY)["output"][:5]]
        assert output[1]["action"] == {"commands": ["true"]}


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_raw_schema_keeps_which_tool_was_called(is_stream: bool) -> None:
    if is_stream:
        stream = StreamTranslation(RESPONSES, "raw")
        data, report = stream.feed(STREAM) + stream.close(), stream.report
    else:
        translated = translate_reply(REPLY, RESPONSES, "raw")
        data, report = translated.data, translated.report
    assert b'"kind":"local_shell"' in data
    assert [loss.what for loss in report.losses if "built-in" in loss.what] == []


def test_what_was_exported_to_the_raw_schema_comes_back_as_the_same_items() -> None:
    raw = translate_request(REQUEST, RESPONSES, "raw").data
    back, items = json.loads(translate_request(raw, "raw", RESPONSES).data), json.loads(REQUEST)["input"]
    assert [item["type"] for item in back["input"][1:11]] == [item["type"] for item in items[1:11]]
    assert back["input"][3]["action"] == items[3]["action"]
    assert back["input"][4]["output"] == items[4]["output"]
    reply = translate_reply(REPLY, RESPONSES, "raw").data
    again = json.loads(translate_reply(reply, "raw", RESPONSES).data)
    assert [item["type"] for item in again["output"][:5]] == [item["type"] for item in json.loads(REPLY)["output"][:5]]
