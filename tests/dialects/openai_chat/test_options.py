from typing import Any

import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.settings import read_format, write_format, write_reasoning
from sightline.model.report import Report
from sightline.model.request import JsonFormat, Options, PlainFormat, Reasoning, Request, SchemaFormat
from tests.dialects.openai_chat.telling import DIALECT
from tests.dialects.reports import added_at, losses, refused_at

SCHEMA: Any = {"type": "object", "properties": {"x": {"type": "integer"}}}


def read(**fields):
    return DIALECT.read_request({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields})


def write(options, dialect="other"):
    report = Report()
    return DIALECT.write_request(Request(model="m", options=options, dialect=dialect), Target(), report), report


def test_the_newer_name_of_the_limit_wins_and_the_older_one_is_kept():
    request = read(max_completion_tokens=10, max_tokens=20)
    assert (request.options.max_tokens, request.extras) == (10, {"max_tokens": 20})
    assert read(max_tokens=20).options.places["max_tokens"] == "/max_tokens"


def test_a_limit_goes_back_under_the_name_that_it_had():
    body = {"model": "m", "messages": [], "max_tokens": 20}
    assert DIALECT.write_request(DIALECT.read_request(body), Target(), Report()) == body
    assert write(Options(max_tokens=20))[0]["max_completion_tokens"] == 20


def test_one_stop_text_and_several():
    assert read(stop="END").options.stop == ("END",)
    assert read(stop=["A", "B"]).options.stop == ("A", "B")


def test_top_k_is_understood_and_never_introduced():
    assert read(top_k=40).options.top_k == 40
    document, report = write(Options(top_k=40, places={"top_k": "/top_k"}))
    assert "top_k" not in document
    assert losses(report) == [("/top_k", "option")]


@pytest.mark.parametrize(
    ("field", "value"), [("temperature", "hot"), ("max_tokens", 1.5), ("stop", 3), ("stream_options", 1), ("n", True)]
)
def test_an_option_of_the_wrong_type_is_a_fault_with_its_place(field, value):
    assert refused_at(read, **{field: value}) == f"/{field}"


def test_every_output_format_is_read():
    assert read_format(None, "/f") == (None, {})
    assert read_format({"type": "text"}, "/f") == (PlainFormat(at="/f"), {})
    assert read_format({"type": "json_object", "x": 1}, "/f") == (JsonFormat(at="/f", extras={"x": 1}), {})
    inner = {"name": "n", "schema": SCHEMA, "strict": True, "y": 2}
    output, unread = read_format({"type": "json_schema", "json_schema": inner, "x": 1}, "/f")
    assert output == SchemaFormat(SCHEMA, "n", None, True, at="/f/json_schema", extras={"y": 2})
    assert unread == {"x": 1}


@pytest.mark.parametrize(
    ("value", "pointer"),
    [("json", "/f"), ({}, "/f/type"), ({"type": "grammar"}, "/f/type"), ({"type": "json_schema"}, "/f/json_schema")],
)
def test_an_unknown_output_format_is_a_fault(value, pointer):
    assert refused_at(read_format, value, "/f") == pointer


def test_a_schema_without_a_name_gets_one_and_says_so():
    report = Report()
    document = write_format(SchemaFormat(SCHEMA), report, same=False)
    assert document == {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}}
    assert added_at(report) == ["/response_format/json_schema/name"]


def test_formats_of_others_leave_their_extras_behind():
    assert write_format(PlainFormat(extras={"x": 1}), Report(), same=False) == {"type": "text"}
    assert write_format(JsonFormat(extras={"x": 1}), Report(), same=True) == {"type": "json_object", "x": 1}


@pytest.mark.parametrize(
    ("reasoning", "effort", "lost"),
    [
        (None, None, []),
        (Reasoning(effort="high"), "high", []),
        (Reasoning(mode="off"), "none", []),
        (Reasoning(mode="on", budget=1024, places={"budget": "/b"}), "low", [("/b", "option")]),
        (Reasoning(mode="adaptive", at="/t"), None, [("/t", "option")]),
        (Reasoning(mode="adaptive", effort="low", at="/t"), "low", [("/t", "identity")]),
        (Reasoning(effort="low", summary="auto", places={"summary": "/s"}), "low", [("/s", "option")]),
        (Reasoning(effort="low", summary="none"), "low", []),
    ],
)
def test_reasoning_is_an_effort_and_what_it_does_not_say_is_reported(reasoning, effort, lost):
    report = Report()
    assert write_reasoning(Options(reasoning=reasoning), report) == effort
    assert losses(report) == lost


def test_a_client_that_always_hears_its_usage_asks_for_it_here():
    document, report = write(Options(stream=True))
    assert document["stream_options"] == {"include_usage": True}
    assert added_at(report) == ["/stream_options/include_usage"]
    assert "stream_options" not in write(Options(stream=True), "openai-chat")[0]
    assert write(Options(stream=True, include_usage=False))[0]["stream_options"] == {"include_usage": False}
    assert "stream_options" not in write(Options())[0]


def test_unknown_stream_options_stay_in_their_place():
    request = read(stream=True, stream_options={"include_usage": True, "include_obfuscation": False})
    assert request.options.include_usage is True
    assert request.extras == {"stream_options": {"include_obfuscation": False}}
