import pytest

from sightline.dialects.openai_responses.output import OpenCall, OpenMessage, OpenReasoning
from sightline.model.events import SignatureReceived, ToolCallBegun
from sightline.model.reply import TokenLogprob


@pytest.fixture
def told():
    return []


@pytest.fixture
def emit(told):
    return lambda kind, fields: told.append((kind.removeprefix("response."), fields))


def names(told):
    return [kind for kind, _ in told]


def test_a_message_speaks_one_part_after_the_other(told, emit):
    message = OpenMessage(emit, "msg_1", 2)
    assert message.start()["content"] == []
    message.say(0, "output_text", "a")
    message.say(0, "output_text", "b")
    message.say(1, "output_text", "")
    message.say(1, "refusal", "no")
    whole = message.close("completed")
    assert [part.get("text", part.get("refusal")) for part in whole["content"]] == ["ab", "", "no"]
    assert names(told) == [
        *("content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done"),
        *("content_part.added", "output_text.done", "content_part.done"),
        *("content_part.added", "refusal.delta", "refusal.done", "content_part.done"),
    ]
    assert {fields["item_id"] for _, fields in told} == {"msg_1"}
    assert [fields["content_index"] for kind, fields in told if kind == "content_part.added"] == [0, 1, 2]


def test_a_message_without_words_is_whole_too(told, emit):
    assert OpenMessage(emit, "msg_1", 0).close("incomplete")["status"] == "incomplete"
    assert told == []


def test_sources_are_counted_within_their_text(told, emit):
    message = OpenMessage(emit, "msg_1", 0)
    message.say(0, "output_text", "a")
    message.annotate({"n": 1})
    message.annotate({"n": 2})
    message.say(1, "output_text", "b")
    message.annotate({"n": 3})
    first, second = message.close("completed")["content"]
    assert (first["annotations"], second["annotations"]) == ([{"n": 1}, {"n": 2}], [{"n": 3}])
    assert [fields["annotation_index"] for kind, fields in told if kind.endswith("annotation.added")] == [0, 1, 0]


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


def test_reasoning_is_shown_as_its_summary(told, emit):
    reasoning = OpenReasoning(emit, "rs_1", 0, 0)
    reasoning.think("", piece=0, summary=False)
    reasoning.think("a", piece=0, summary=False)
    reasoning.think("b", piece=0, summary=False)
    reasoning.think("c", piece=1, summary=False)
    item = reasoning.close()
    assert texts(item, "summary") == ["ab\n\nc"]
    assert "content" not in item
    assert item["encrypted_content"] == "sightline:::"
    assert names(told) == [
        "reasoning_summary_part.added",
        *["reasoning_summary_text.delta"] * 3,
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ]


def test_beside_a_summary_it_is_content(told, emit):
    reasoning = OpenReasoning(emit, "rs_1", 0, 0)
    reasoning.think("s", piece=0, summary=True)
    reasoning.think("", piece=1, summary=True)
    reasoning.think("long", piece=0, summary=False)
    item = reasoning.close()
    assert (texts(item, "summary"), texts(item, "content")) == (["s", ""], ["long"])
    assert names(told)[-4:] == [
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
    ]
    assert [fields["summary_index"] for kind, fields in told if kind == "reasoning_summary_part.added"] == [0, 1]


@pytest.mark.parametrize(
    ("seal", "expected"),
    [
        (SignatureReceived(0, "enc", "openai-responses", id="rs_1"), "enc"),
        (SignatureReceived(0, None, "openai-responses", id="rs_1"), None),
        (SignatureReceived(0, "enc", "openai-responses", id="rs_9"), "sightline:openai-responses:rs_9:enc"),
        (SignatureReceived(0, "sig", "anthropic"), "sightline:anthropic::sig"),
    ],
)
def test_seals_name_their_maker(emit, seal, expected):
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
def test_calls(told, emit, kind, fragments, words, events):
    call = OpenCall(emit, {"id": "x", "name": "f"}, 3, ToolCallBegun(0, "c", "f", kind=kind))
    assert call.start() == {"id": "x", "name": "f", "status": "in_progress", next(iter(words)): ""}
    for fragment in fragments:
        call.write(fragment)
    assert call.close("completed") == {"id": "x", "name": "f", "status": "completed", **words}
    assert names(told)[-1] == f"{events}.done"
    assert "".join(fields["delta"] for kind, fields in told if kind.endswith("delta")) == next(iter(words.values()))
