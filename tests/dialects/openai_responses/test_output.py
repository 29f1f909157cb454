"""Items of a reply while they are written."""

import pytest

from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.output import OpenCall, OpenMessage, OpenReasoning, Output
from sightline.model.events import SignatureReceived, ToolCallBegun
from sightline.model.parts import Audio, Citation, Image, Inline, Link, Opaque, Thinking
from sightline.model.reply import TokenLogprob
from sightline.model.report import Report
from tests.dialects.reports import added_at, named_losses


@pytest.fixture
def report():
    return Report()


@pytest.fixture
def told():
    return []


@pytest.fixture
def output(report, told):
    return Output("resp/ü 1", report, lambda kind, fields: told.append((kind, fields)))


def kinds(output):
    return [item["type"] for item in output.items]


def test_words_that_follow_each_other_share_a_message(output):
    output.text(0, "a")
    output.refusal(1, "no")
    output.thinking(2, "hm")
    output.text(3, "b")
    output.close()
    assert kinds(output) == ["message", "reasoning", "message"]
    assert len(output.items[0]["content"]) == 2
    assert output.has_refusal


def test_one_item_is_open_at_a_time_with_one_added_and_one_done_event(output, told):
    output.text(0, "a")
    output.call(ToolCallBegun(1, "c", "f"))
    output.arguments("{}")
    output.close()
    output.close()
    seen = [(kind, fields["output_index"]) for kind, fields in told if "output_item" in kind]
    assert seen == [
        ("response.output_item.added", 0),
        ("response.output_item.done", 0),
        ("response.output_item.added", 1),
        ("response.output_item.done", 1),
    ]


def test_ids_are_made_of_the_replys_id_and_are_always_the_same(output):
    output.text(0, "a")
    output.thinking(1, "b")
    output.call(ToolCallBegun(2, "", "f", kind="custom"))
    output.call(ToolCallBegun(3, "c", "f"))
    output.close()
    assert [item["id"] for item in output.items] == ["msg_resp1_0", "rs_resp1_1", "ctc_resp1_2", "fc_resp1_3"]
    assert output.items[2]["call_id"] == "call_resp1_2"


def test_a_call_without_an_id_gets_one(output, report):
    output.call(ToolCallBegun(0, "", "f"))
    output.call(ToolCallBegun(1, "", "f"))
    assert added_at(report) == ["/output/0/call_id", "/output", "/output/1/call_id"]


def test_a_refusal_without_words_is_nothing(output, told):
    output.refusal(0, "")
    output.close()
    assert (output.items, told, output.has_refusal) == ([], [], False)


def test_an_item_that_has_an_id_keeps_it(output):
    output.call(ToolCallBegun(0, "c", "f", item="fc_own", namespace="ns"))
    output.sign(SignatureReceived(1, "enc", NAME, id="rs_own"))
    output.close()
    assert [item["id"] for item in output.items] == ["fc_own", "rs_own"]
    assert output.items[0]["namespace"] == "ns"


def test_two_pieces_of_thinking_are_two_items(output):
    output.thinking(0, "a")
    output.thinking(1, "b")
    output.close()
    assert kinds(output) == ["reasoning", "reasoning"]


def test_arguments_without_a_call_are_dropped(output):
    output.arguments("{}")
    assert output.items == []


def test_unsupported_citation_opens_no_item(output, report):
    output.cite(0, Citation(title="t", at="/c"))
    output.close()
    assert output.items == []
    assert named_losses(report) == [("/c", "a citation", "option")]
    output.cite(0, Citation(url="u", start=0, end=1))
    output.close()
    assert output.items[0]["content"][0]["annotations"][0]["url"] == "u"


def test_logprobs_wait_for_their_text(output, report):
    tokens = (TokenLogprob("a", -1.0),)
    output.logprobs(tokens)
    output.thinking(0, "hm")
    output.text(1, "a")
    output.logprobs(tokens)
    output.end("completed")
    assert len(output.items[1]["content"][0]["logprobs"]) == 2
    assert not report.losses


def test_logprobs_of_no_text_are_a_loss(output, report):
    output.logprobs((TokenLogprob("a", -1.0),))
    output.end("completed")
    assert named_losses(report) == [("", "logprobs", "option")]


def test_parts_that_come_whole(output, report):
    output.part(Thinking(signature="data", signed_by="anthropic", redacted=True))
    output.part(Opaque(NAME, {"type": "web_search_call", "id": "ws"}))
    output.part(Image(Inline("image/png", "AA")))
    output.part(Image(Inline("image/jpeg", "BB"), signature="sig", signed_by="gemini"))
    assert kinds(output) == [
        "reasoning",
        "web_search_call",
        "image_generation_call",
        "reasoning",
        "image_generation_call",
    ]
    assert output.items[0]["encrypted_content"] == "sightline:anthropic:redacted:data"
    assert output.items[2]["result"] == "AA"
    assert output.items[3]["encrypted_content"] == "sightline:gemini:next:sig"
    assert output.items[4]["output_format"] == "jpeg"
    assert not report.losses


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("u"), at="/p"),
        Image(Inline("image/tiff", "AA"), at="/p"),
        Audio(at="/p"),
        Opaque("gemini", {}, at="/p"),
        Opaque(NAME, "odd", at="/p"),
    ],
)
def test_parts_that_have_no_item_are_a_loss(output, report, part):
    output.part(part)
    assert output.items == []
    assert [(pointer, severity) for pointer, _, severity in named_losses(report)] == [("/p", "content")]


def test_built_in_tool_call_is_written_once_complete(output, told, report):
    output.call(ToolCallBegun(0, "", "shell", kind="shell"))
    output.arguments('{"commands":')
    assert told == []
    output.arguments("[]}")
    output.complete({"environment": None})
    item = {"type": "shell_call", "id": "sh_resp1_0", "call_id": "call_resp1_0", "status": "completed"}
    assert output.items == [{**item, "action": {"commands": []}, "environment": None}]
    assert [kind for kind, _ in told] == ["response.output_item.added", "response.output_item.done"]
    assert ("/output/0/call_id", "id of a tool call") in [(each.pointer, each.what) for each in report.additions]


def test_a_call_whose_arguments_are_no_action_reaches_the_client_as_a_function(output, told, report):
    output.call(ToolCallBegun(0, "c", "shell", kind="shell", at="/0"))
    output.arguments('{"commands":')
    output.end("incomplete")
    (item,) = output.items
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "shell", '{"commands":')
    assert item["status"] == "incomplete"
    assert named_losses(report) == [("/0", "that shell is a built-in tool", "option")]
    assert [kind.removeprefix("response.") for kind, _ in told] == [
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done")
    ]


@pytest.fixture
def told_open_items():
    return []


@pytest.fixture
def emit(told_open_items):
    return lambda kind, fields: told_open_items.append((kind.removeprefix("response."), fields))


def names(told_open_items):
    return [kind for kind, _ in told_open_items]


def test_a_message_speaks_one_part_after_the_other(told_open_items, emit):
    message = OpenMessage(emit, "msg_1", 2)
    assert message.start()["content"] == []
    message.say(0, "output_text", "a")
    message.say(0, "output_text", "b")
    message.say(1, "output_text", "")
    message.say(1, "refusal", "no")
    whole = message.close("completed")
    assert [part.get("text", part.get("refusal")) for part in whole["content"]] == ["ab", "", "no"]
    assert names(told_open_items) == [
        *("content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done"),
        *("content_part.added", "output_text.done", "content_part.done"),
        *("content_part.added", "refusal.delta", "refusal.done", "content_part.done"),
    ]
    assert {fields["item_id"] for _, fields in told_open_items} == {"msg_1"}
    assert [fields["content_index"] for kind, fields in told_open_items if kind == "content_part.added"] == [0, 1, 2]


def test_a_message_without_words_is_whole_too(told_open_items, emit):
    assert OpenMessage(emit, "msg_1", 0).close("incomplete")["status"] == "incomplete"
    assert told_open_items == []


def test_sources_are_counted_within_their_text(told_open_items, emit):
    message = OpenMessage(emit, "msg_1", 0)
    message.say(0, "output_text", "a")
    message.annotate({"n": 1})
    message.annotate({"n": 2})
    message.say(1, "output_text", "b")
    message.annotate({"n": 3})
    first, second = message.close("completed")["content"]
    assert (first["annotations"], second["annotations"]) == ([{"n": 1}, {"n": 2}], [{"n": 3}])
    assert [fields["annotation_index"] for kind, fields in told_open_items if kind.endswith("annotation.added")] == [
        0,
        1,
        0,
    ]


def test_logprobs_belong_to_a_text(emit):
    message = OpenMessage(emit, "msg_1", 0)
    tokens = [TokenLogprob("é", -1.0, top=(TokenLogprob("e", -2.0, (101,)),))]
    assert not message.weigh(tokens)
    message.say(0, "refusal", "no")
    assert not message.weigh(tokens)
    message.say(1, "output_text", "é")
    assert message.weigh(tokens)
    assert message.close("completed")["content"][1]["logprobs"] == [
        {
            "token": "é",
            "logprob": -1.0,
            "bytes": [195, 169],
            "top_logprobs": [{"token": "e", "logprob": -2.0, "bytes": [101]}],
        }
    ]


def texts(item, key):
    return [piece["text"] for piece in item[key]]


def test_reasoning_is_shown_as_its_summary(told_open_items, emit):
    reasoning = OpenReasoning(emit, "rs_1", 0, 0)
    reasoning.think("", piece=0, summary=False)
    reasoning.think("a", piece=0, summary=False)
    reasoning.think("b", piece=0, summary=False)
    reasoning.think("c", piece=1, summary=False)
    item = reasoning.close()
    assert texts(item, "summary") == ["ab\n\nc"]
    assert "content" not in item
    assert item["encrypted_content"] == "sightline:::"
    assert names(told_open_items) == [
        "reasoning_summary_part.added",
        *["reasoning_summary_text.delta"] * 3,
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ]


def test_beside_a_summary_it_is_content(told_open_items, emit):
    reasoning = OpenReasoning(emit, "rs_1", 0, 0)
    reasoning.think("s", piece=0, summary=True)
    reasoning.think("", piece=1, summary=True)
    reasoning.think("long", piece=0, summary=False)
    item = reasoning.close()
    assert (texts(item, "summary"), texts(item, "content")) == (["s", ""], ["long"])
    assert names(told_open_items)[-4:] == [
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
    ]
    assert [fields["summary_index"] for kind, fields in told_open_items if kind == "reasoning_summary_part.added"] == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("seal", "expected"),
    [
        (SignatureReceived(0, "enc", "openai-responses", id="rs_1"), "enc"),
        (SignatureReceived(0, None, "openai-responses", id="rs_1"), None),
        (SignatureReceived(0, "enc", "openai-responses", id="rs_9"), "sightline:openai-responses:rs_9:enc"),
        (SignatureReceived(0, "sig", "anthropic"), "sightline:anthropic::sig"),
    ],
)
def test_signatures_name_their_maker(emit, seal, expected):
    reasoning = OpenReasoning(emit, "rs_1", 0, 0)
    reasoning.sign(seal)
    assert reasoning.close().get("encrypted_content") == expected


@pytest.mark.parametrize(
    ("kind", "fragments", "words", "events"),
    [
        ("function", ["", '{"a"', ":1}"], {"arguments": '{"a":1}'}, "function_call_arguments"),
        ("function", [], {"arguments": "{}"}, "function_call_arguments"),
        ("custom", ["raw"], {"input": "raw"}, "custom_tool_call_input"),
        ("custom", [], {"input": ""}, "custom_tool_call_input"),
    ],
)
def test_calls(told_open_items, emit, kind, fragments, words, events):
    call = OpenCall(emit, {"id": "x", "name": "f"}, 3, ToolCallBegun(0, "c", "f", kind=kind))
    assert call.start() == {"id": "x", "name": "f", "status": "in_progress", next(iter(words)): ""}
    for fragment in fragments:
        call.write(fragment)
    assert call.close("completed") == {"id": "x", "name": "f", "status": "completed", **words}
    assert names(told_open_items)[-1] == f"{events}.done"
    assert "".join(fields["delta"] for kind, fields in told_open_items if kind.endswith("delta")) == next(
        iter(words.values())
    )
