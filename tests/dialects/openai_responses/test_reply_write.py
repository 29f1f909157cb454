import pytest
from openai.types.responses import Response

from sightline.dialects.dialect import Client
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.reply_write import write_reply
from sightline.errors import Code, Fault
from sightline.model.fold import fold
from sightline.model.parts import Refusal, Text, Thinking
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.report import Report
from tests.dialects.openai_responses.cases import CLIENT, DIALECT, having, loaded
from tests.dialects.reports import added_at, named_losses


def written(*parts, finish="stop", report=None, **fields):
    choice = Choice(parts=parts, finish=finish, **fields)
    return write_reply(Reply(choices=(choice,), id="resp_1"), CLIENT, report or Report())


def test_the_least_that_the_api_demands():
    report = Report()
    body = write_reply(Reply(choices=(Choice(finish="stop"),)), Client(), report)
    assert body == {
        "id": "resp_0",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    assert added_at(report) == [
        "/parallel_tool_calls",
        "/tool_choice",
        "/tools",
        "/id",
        "/model",
        "/created_at",
    ]


def test_identity_is_the_providers_before_it_is_the_clients():
    body = write_reply(Reply(id="x", model="y", created=0, usage=Usage(input_tokens=1)), CLIENT, Report())
    assert (body["id"], body["model"], body["created_at"], body["usage"]["total_tokens"]) == ("x", "y", 0, 1)
    body = write_reply(Reply(), CLIENT, Report())
    assert (body["id"], body["model"], body["created_at"]) == ("resp_c", "m", 7)


def test_a_summary_and_the_reasoning_beside_it():
    (item,) = written(Thinking("long", ("s",), id="rs_1", signature="enc", signed_by=NAME))["output"]
    assert item == {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "s"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "enc",
    }


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        (None, "in_progress", None),
    ],
)
def test_finishes(finish, status, reason):
    body = written(Text("a"), finish=finish)
    assert (body["status"], body["incomplete_details"]) == (status, reason)
    assert body["output"][0]["status"] == status


def test_a_refusal_is_its_words_and_without_any_a_filtered_answer():
    report = Report()
    assert written(Refusal("no"), finish="refusal", report=report)["output"][0]["content"] == [
        {"type": "refusal", "refusal": "no"}
    ]
    assert not report.losses
    for parts in ((Text("I"),), (Text("I"), Refusal(""))):
        wordless = written(*parts, finish="refusal", finish_at="/f", report=report)
        assert [part["type"] for part in wordless["output"][0]["content"]] == ["output_text"]
        assert (wordless["status"], wordless["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})
        assert fold(DIALECT.read_reply(wordless)).choice.finish == "content_filter"
    assert named_losses(report) == [("/f", "refusal", "identity")]


def test_a_reply_that_failed_says_so_and_keeps_what_had_arrived():
    reply = Reply(choices=(Choice(parts=(Text("so far"),)),), fault=Fault(Code.RATE_LIMITED, "slow"))
    body = write_reply(reply, CLIENT, Report())
    assert (body["status"], body["error"]) == ("failed", {"code": "rate_limit_exceeded", "message": "slow"})
    assert body["output"][0]["content"][0]["text"] == "so far"
    Response.model_validate(body)


def test_a_reply_that_failed_before_it_began_is_the_error_of_the_endpoint():
    report = Report()
    fault = Fault(Code.OVERLOADED, "busy", details={"type": "overloaded_error"})
    reply = Reply(fault=fault, id="msg_1", places={"id": "/id"}, dialect="anthropic")
    body = write_reply(reply, CLIENT, report)
    assert body == {"error": {"message": "busy", "type": "server_error", "param": None, "code": "server_is_overloaded"}}
    assert named_losses(report) == [("/id", "id", "identity")]
    assert not report.additions
    assert fold(DIALECT.read_reply(body)).fault.code is Code.OVERLOADED


def test_a_response_that_has_an_id_of_its_own_has_begun():
    reply = Reply(fault=Fault(Code.OVERLOADED, "busy"), id="resp_1", dialect=NAME)
    body = write_reply(reply, CLIENT, Report())
    assert (body["id"], body["status"]) == ("resp_1", "failed")


def test_one_choice_is_all_there_is():
    report = Report()
    other = Choice(parts=(Text("b"),), finish="stop", finish_at="/choices/1/finish_reason")
    body = write_reply(Reply(choices=(Choice(finish="stop"), other)), CLIENT, report)
    assert body["output"] == []
    assert named_losses(report) == [("/choices/1", "another choice", "content")]


@pytest.mark.parametrize("case", having("reply.json"), ids=lambda case: case.name)
def test_what_we_read_we_can_write_for_the_vendors_own_model(case):
    reply = fold(DIALECT.read_reply(loaded(case, "reply.json")), NAME)
    body = write_reply(reply, CLIENT, Report())
    Response.model_validate(body)
    assert fold(DIALECT.read_reply(body)).choice.finish == reply.choice.finish
