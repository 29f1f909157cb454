from typing import Any

import pytest

from sightline.catalog.provider import Quirks
from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.content import ContentWriter
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Message, Options, Request
from tests.dialects.openai_chat.telling import DIALECT
from tests.dialects.reports import added_at, losses, without_nulls

write_request = DIALECT.write_request
PNG = Inline("image/png", "AAAA")


def write(*messages, source="anthropic", system="in_place", **quirks):
    report = Report()
    document = write_request(Request(messages=messages, dialect=source), Target(system, Quirks(**quirks)), report)
    return document["messages"], losses(report)


def same(document):
    return without_nulls(write_request(DIALECT.read_request(document), Target(), Report()))


def test_words_stay_strings_and_lists_stay_lists():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": []},
        {"role": "user", "content": ""},
        {"role": "tool", "tool_call_id": "", "content": "x", "name": "f"},
    ]
    assert same({"messages": messages})["messages"] == messages


def test_calls_and_reasoning_of_kinds_that_are_unknown_go_back_as_they_were():
    message = {
        "role": "assistant",
        "content": "w",
        "reasoning": {"steps": [1]},
        "reasoning_content": "hm",
        "thinking": "hm",
        "tool_calls": [{"id": "c", "type": "mcp", "mcp": {"name": "f"}}],
    }
    assert same({"messages": [message]})["messages"] == [message]


def test_system_messages_of_others_stay_in_their_place():
    messages = (
        Message("system", (Text("s"),)),
        Message("user", (Text("u"),), name="ada"),
        Message("developer", (Text("d"),)),
    )
    assert write(*messages)[0] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u", "name": "ada"},
        {"role": "developer", "content": "d"},
    ]
    assert [message["role"] for message in write(*messages, system="merge_all")[0]] == ["system", "user"]


def test_reasoning_of_others_goes_where_the_provider_takes_it_or_is_a_loss():
    thought = Thinking("hm", signature="sig", signed_by="anthropic", at="/t")
    message = Message("assistant", (thought, Text("w")))
    assert write(message) == ([{"role": "assistant", "content": "w"}], [("/t", "identity"), ("/t", "content")])
    assert write(message, thinking_field="reasoning_content") == (
        [{"role": "assistant", "content": "w", "reasoning_content": "hm"}],
        [("/t", "identity")],
    )


def test_several_thoughts_become_one_text_and_a_late_one_loses_its_place():
    both = Thinking("b", ("s",), at="/b")
    parts = (Thinking("a"), both, Text("w"), Thinking("c", at="/c"), Thinking(id="next", at="/n"))
    messages, losses = write(Message("assistant", parts), thinking_field="reasoning")
    assert messages == [{"role": "assistant", "content": "w", "reasoning": "a\n\ns\n\nb\n\nc"}]
    assert losses == [("/c", "content"), ("/n", "identity")]


def test_a_signature_of_this_dialect_that_comes_back_through_another_is_written_exactly():
    thought = Thinking("hm", id="cot_1", signature="c2ln", signed_by="openai-chat")
    again = Thinking(signature="other", signed_by="openai-chat", at="/again")
    messages, losses = write(Message("assistant", (thought, again)), thinking_field="reasoning_text")
    assert messages == [
        {"role": "assistant", "content": None, "reasoning_opaque": "c2ln", "cot_id": "cot_1", "reasoning_text": "hm"}
    ]
    assert losses == [("/again", "identity")]


def test_calls_stand_beside_the_words_and_an_empty_argument_list_is_an_object():
    call = ToolCall("c1", "f", "", item="fc_1", signature="s", signed_by="anthropic", at="/c")
    custom = ToolCall("c2", "g", "", kind="custom")
    messages, losses = write(Message("assistant", (call, custom, CacheBreakpoint(at="/m"), Text("late", at="/l"))))
    assert messages == [
        {
            "role": "assistant",
            "content": "late",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": ""}},
            ],
        }
    ]
    assert losses == [("/c", "identity"), ("/c", "identity"), ("/l", "content"), ("/m", "option")]


@pytest.mark.parametrize(
    ("source", "takes", "is_written"),
    [
        ("openai-chat", False, True),
        ("", False, False),
        ("", True, True),
        ("gemini", True, True),
        ("gemini", False, False),
    ],
)
def test_gemini_call_signature_is_sent_only_to_targets_that_accept_it(source, takes, is_written):
    sealed = ToolCall("c1", "f", "{}", signature="s", signed_by="gemini", at="/own")
    foreign = ToolCall("c2", "f", "{}", signature="s", signed_by="anthropic", at="/foreign")
    [message], losses = write(Message("assistant", (sealed, foreign)), source=source, call_seals=takes)
    function = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    seal = {"extra_content": {"google": {"thought_signature": "s"}}} if is_written else {}
    assert message["tool_calls"] == [{"id": "c1", **function, **seal}, {"id": "c2", **function}]
    assert losses == [("/foreign", "identity")] if is_written else [("/own", "identity"), ("/foreign", "identity")]


def test_a_call_without_words_has_null_content():
    [message] = write(Message("assistant", (ToolCall("c", "f", "{}"), CacheBreakpoint())))[0]
    assert message["content"] is None


def test_pictures_and_files_of_results_follow_in_a_user_message():
    document = Document(Inline("application/pdf", "AA=="), "a.pdf", at="/d")
    result = ToolResult("c1", (Text("see"), Image(PNG, at="/i"), document, Document(PlainText("p"))), name="f", at="/r")
    report = Report()
    request = Request(
        messages=(Message("tool", (result, ToolResult("c2", (Text("b"),)))), Message("user", (Text("go"),))),
        dialect="anthropic",
    )
    messages = write_request(request, Target(), report)["messages"]
    assert [message["role"] for message in messages] == ["tool", "tool", "user", "user"]
    assert messages[0]["content"] == [{"type": "text", "text": "see"}, {"type": "text", "text": "p"}]
    assert [part["type"] for part in messages[2]["content"]] == ["image_url", "file"]
    assert [loss.pointer for loss in report.losses] == ["/r", "/i", "/d"]
    assert added_at(report) == ["/messages/2"]


def test_a_result_of_others_is_a_tool_message_and_what_it_cannot_say_is_a_loss():
    result = ToolResult("c1", is_error=True, structured={"a": 1}, item="i", at="/r")
    assert write(Message("user", (result, CacheBreakpoint(at="/m")))) == (
        [{"role": "tool", "tool_call_id": "c1", "content": '{"a":1}'}],
        [("/r", "option"), ("/r", "identity"), ("/m", "option")],
    )


def test_words_beside_results_follow_them():
    parts = (Text("before"), ToolResult("c1", (Text("r"),), at="/r"), Text("after"))
    messages, losses = write(Message("user", parts))
    assert [message["role"] for message in messages] == ["tool", "user"]
    assert losses == [("/r", "content")]


def test_tool_text_becomes_a_user_message_with_a_loss():
    assert write(Message("tool", (Text("w"),), at="/t")) == ([{"role": "user", "content": "w"}], [("/t", "content")])


def test_refusals_and_opaque_parts_of_others():
    parts = (Refusal("no, "), Refusal("never"), Opaque("anthropic", {}, at="/o"))
    assert write(Message("assistant", parts, id="msg_1", at="/m")) == (
        [{"role": "assistant", "content": None, "refusal": "no, never"}],
        [("/m", "identity"), ("/o", "content")],
    )


def test_a_message_of_which_nothing_is_left_is_not_written():
    reference = Opaque("openai-responses", {"type": "item_reference"}, at="/1")
    mirrored = Opaque("openai-responses", {"type": "additional_tools"}, mirrored=True, at="/2")
    assert write(
        Message("user", (Text("u"),), at="/0"),
        Message("assistant", (reference,), at="/1"),
        Message("developer", (mirrored,), at="/2"),
        Message("system", (Image(PNG, at="/3/content/0"),), at="/3"),
        Message("user", (), at="/4"),
        Message("assistant", (Thinking(at="/5"),), at="/5"),
        Message("user", (ToolResult("c", at="/6/0"), Opaque("anthropic", {}, at="/6/1")), at="/6"),
        Message("user", (Text(""),), at="/7"),
    ) == (
        [
            {"role": "user", "content": "u"},
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "user", "content": ""},
        ],
        [
            ("/1", "content"),
            ("/3/content/0", "content"),
            ("/3", "identity"),
            ("/4", "identity"),
            ("/5", "identity"),
            ("/6/1", "content"),
        ],
    )


def test_pictures_of_results_wait_for_all_results_even_where_a_message_between_is_nothing():
    picture = Message("tool", (ToolResult("a", (Image(PNG),)),))
    nothing = Message("developer", (Opaque("anthropic", {}, mirrored=True, at="/n"),), at="/n")
    messages, _ = write(picture, nothing, Message("tool", (ToolResult("b"),)))
    assert [message["role"] for message in messages] == ["tool", "tool", "user"]


def test_an_id_goes_out_as_it_came_however_long_it_is():
    long = "call_1__thought__" + "c" * 400
    call, result = ToolCall(long, "f", "{}", at="/c"), ToolResult(long, (Text("r"),), at="/r")
    (asked, answered), losses = write(Message("assistant", (call,)), Message("tool", (result,)))
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == long
    assert losses == []
    own = {"messages": [{"role": "tool", "tool_call_id": long, "content": "r"}]}
    assert same(own) == own


def test_no_more_stop_texts_are_written_than_the_api_takes():
    report = Report()
    options = Options(stop=("a", "b", "c", "d", "e", "f"), places={"stop": "/stop_sequences"})
    request = Request(messages=(Message("user", (Text("u"),)),), options=options, dialect="anthropic")
    assert write_request(request, Target(), report)["stop"] == ["a", "b", "c", "d"]
    assert losses(report) == [("/stop_sequences", "option")] * 2
    assert same({"messages": [], "stop": list("abcdef")})["stop"] == list("abcdef")


@pytest.mark.parametrize("file", [{"file_data": "JVBERi0=", "filename": "a.pdf"}, {"file_data": "AAAA", "x": 1}])
def test_a_file_without_the_beginning_of_a_data_url_is_written_as_it_was(file):
    body = {"messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]}
    assert same(body) == body


def test_a_foreign_signature_is_not_offered_to_the_provider_even_in_its_own_dialect():
    body = {"messages": [{"role": "assistant", "content": "w", "reasoning_opaque": "sightline:anthropic::sig"}]}
    report = Report()
    assert write_request(DIALECT.read_request(body), Target(), report) == {
        "messages": [{"role": "assistant", "content": "w"}]
    }
    assert [loss.pointer for loss in report.losses] == ["/messages/0/reasoning_opaque"]


def test_a_provider_of_the_older_name_gets_the_limit_under_it():
    report = Report()
    target = Target(quirks=Quirks(max_tokens_field="max_tokens"))
    document = write_request(Request(messages=(), options=Options(max_tokens=7)), target, report)
    assert document == {"messages": [], "max_tokens": 7}
    assert write_request(Request(), target, report) == {"messages": []}
    assert not report.losses
    assert not report.additions


def test_max_tokens_field_is_renamed_for_the_provider_and_reported():
    report = Report()
    target = Target(quirks=Quirks(max_tokens_field="max_tokens"))
    request = DIALECT.read_request({"messages": [], "max_completion_tokens": 7})
    assert write_request(request, target, report) == {"messages": [], "max_tokens": 7}
    assert added_at(report) == ["/max_tokens"]
    assert not report.losses
    older = DIALECT.read_request({"messages": [], "max_tokens": 7})
    assert write_request(older, Target(), Report()) == {"messages": [], "max_tokens": 7}
    both = DIALECT.read_request({"messages": [], "max_completion_tokens": 7, "max_tokens": 9})
    assert write_request(both, target, report) == {"messages": [], "max_tokens": 9}
    assert losses(report) == [("/max_completion_tokens", "option")]


@pytest.mark.parametrize("source", ["openai-responses", "openai-chat"])
def test_a_provider_without_developers_gets_their_words_from_the_system(source):
    report = Report()
    messages = (Message("developer", (Text("Be brief."),), bare=True), Message("user", (Text("Hi"),), bare=True))
    request = Request(messages=messages, dialect=source)
    document = write_request(request, Target(quirks=Quirks(developer_role=False)), report)
    assert document["messages"][0] == {"role": "system", "content": "Be brief."}
    assert added_at(report) == ["/messages/0/role"]
    assert not report.losses
    assert write_request(request, Target(), Report())["messages"][0]["role"] == "developer"


def test_include_usage_is_not_sent_to_a_provider_that_rejects_it():
    report = Report()
    target = Target(quirks=Quirks(stream_usage=False))
    request = Request(options=Options(stream=True), dialect="anthropic")
    assert write_request(request, target, report) == {"messages": [], "stream": True}
    assert not report.losses
    own = DIALECT.read_request({"messages": [], "stream": True, "stream_options": {"include_usage": True}})
    assert write_request(own, target, report) == {"messages": [], "stream": True}
    assert losses(report) == [("/stream_options/include_usage", "identity")]


def write_content(*parts, source="other", bare=False, words_only=False):
    report = Report()
    content = ContentWriter(report, source).write(parts, bare=bare, words_only=words_only)
    return content, losses(report)


def test_one_text_of_another_dialect_is_a_string():
    assert write_content(Text("hi")) == ("hi", [])
    assert write_content(Text("hi"), Text("ho"))[0] == [{"type": "text", "text": "hi"}, {"type": "text", "text": "ho"}]
    assert write_content() == (None, [])
    assert write_content(Text("")) == ("", [])


def test_content_of_its_own_dialect_stays_a_string_or_a_list():
    assert write_content(Text("hi"), source="openai-chat", bare=True)[0] == "hi"
    assert write_content(Text("hi"), source="openai-chat")[0] == [{"type": "text", "text": "hi"}]
    assert write_content(source="openai-chat")[0] == []
    assert write_content(source="openai-chat", bare=True)[0] is None


@pytest.mark.parametrize(
    ("part", "document"),
    [
        (Refusal("no"), {"type": "refusal", "refusal": "no"}),
        (Image(PNG, "low"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}),
        (Image(Link("https://e.org/a")), {"type": "image_url", "image_url": {"url": "https://e.org/a"}}),
        (
            Audio(Inline("audio/mpeg", "AAAA")),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        ),
        (
            Document(Inline("application/pdf", "AAAA"), "a.pdf"),
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
        ),
        (Document(PlainText("words")), {"type": "text", "text": "words"}),
    ],
)
def test_every_part_that_a_message_can_hold(part, document):
    assert write_content(part, Text("x")) == ([document, {"type": "text", "text": "x"}], [])


@pytest.mark.parametrize(
    ("part", "severities"),
    [
        (Text("t", citations=(Citation(url="u"),), at="/p"), ["option"]),
        (Text("t", signature="s", signed_by="gemini", at="/p"), ["identity"]),
        (Image(PNG, signature="s", signed_by="gemini", at="/p"), ["identity"]),
        (Image(PNG, "very high", at="/p"), ["option"]),
        (Image(FileId("file-1"), at="/p"), ["content"]),
        (Image(Link("https://e.org/a", "image/png"), at="/p"), ["identity"]),
        (Audio(Link("https://e.org/a.wav"), at="/p"), ["content"]),
        (Audio(Inline("video/mp4", "AAAA"), at="/p"), ["content"]),
        (Document(Link("https://e.org/a.pdf"), at="/p"), ["content"]),
        (Document(FileId("file-1"), at="/p"), ["content"]),
        (Document(PNG, context="c", cite=True, at="/p"), ["content", "option"]),
        (Document(PlainText("w", "text/csv"), "t.csv", at="/p"), ["identity", "identity"]),
        (CacheBreakpoint(at="/p"), ["option"]),
        (Thinking("hm", at="/p"), ["content"]),
        (ToolCall("1", "f", "{}", at="/p"), ["content"]),
        (ToolResult("1", at="/p"), ["content"]),
        (Opaque("anthropic", {"type": "x"}, at="/p"), ["content"]),
        (Opaque("anthropic", {"type": "x"}, mirrored=True, at="/p"), []),
    ],
)
def test_what_a_message_cannot_hold_is_reported_where_it_stood(part, severities):
    assert write_content(part)[1] == [("/p", severity) for severity in severities]


def test_a_file_without_a_name_gets_one_because_the_api_demands_it():
    report = Report()
    document = Document(Inline("application/pdf", "AAAA"), at="/p")
    file = {"file_data": "data:application/pdf;base64,AAAA", "filename": "document.pdf"}
    assert ContentWriter(report, "anthropic").parts((document,)) == [{"type": "file", "file": file}]
    assert (added_at(report), report.losses) == (["/p"], ())


def test_a_file_id_is_good_for_the_vendors_other_api_and_a_link_for_the_same():
    expected = {"type": "file", "file": {"file_id": "file-1"}}
    assert write_content(Document(FileId("file-1")), source="openai-responses") == ([expected], [])
    linked = {"type": "file", "file": {"file_data": "https://e.org/a"}}
    assert write_content(Document(Link("https://e.org/a")), source="openai-chat") == ([linked], [])


def test_own_parts_keep_their_extras_and_opaque_ones_everything():
    odd: Any = Opaque("openai-chat", {"type": "video_url", "video_url": {"url": "u"}})
    assert write_content(Text("t", extras={"x": 1}), odd, source="openai-chat") == (
        [{"type": "text", "text": "t", "x": 1}, odd.value],
        [],
    )
    assert write_content(Opaque("openai-chat", "odd"), source="openai-chat", bare=True)[0] == ["odd"]


def test_roles_that_take_words_only_lose_the_rest():
    assert write_content(Text("t"), Image(PNG, at="/p"), words_only=True) == ("t", [("/p", "content")])
    assert write_content(Image(PNG), source="openai-chat", words_only=True)[1] == []
