from sightline.errors import Code, Fault
from sightline.model.parts import Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, reply_json
from sightline.model.usage import Usage


def test_the_public_form_names_what_is_known_and_leaves_out_the_rest() -> None:
    choice = Choice(
        parts=(
            Thinking("hm", signature="s", signed_by="anthropic", at="/content/0"),
            Text("hi"),
            ToolCall("c1", "add", "", extras={"x": 1}),
        ),
        finish="tool_calls",
    )
    usage = Usage(input_tokens=5, output_tokens=2, cached_tokens=0, at="/usage", extras={"x": 1})
    assert reply_json(Reply(choices=(choice,), id="r1", model="m", usage=usage)) == {
        "role": "assistant",
        "parts": [
            {"type": "thinking", "text": "hm", "signature": "s"},
            {"type": "text", "text": "hi"},
            {"type": "tool_call", "id": "c1", "name": "add", "arguments": ""},
        ],
        "finish": "tool_calls",
        "usage": {"input_tokens": 5, "output_tokens": 2, "cached_tokens": 0},
        "model": "m",
        "id": "r1",
    }


def test_a_call_without_an_id_shows_none() -> None:
    call = ToolCall("", "add", "{}")
    assert reply_json(Reply(choices=(Choice(parts=(call,), finish="tool_calls"),)))["parts"] == [
        {"type": "tool_call", "name": "add", "arguments": "{}"}
    ]


def test_further_choices_stand_behind_the_first() -> None:
    reply = Reply(choices=(Choice(finish="stop"), Choice(parts=(Text("b"),), finish="length")))
    assert reply_json(reply)["others"] == [{"parts": [{"type": "text", "text": "b"}], "finish": "length"}]


def test_a_fault_is_shown_with_its_code() -> None:
    reply = Reply(choices=(Choice(finish="error"),), fault=Fault(Code.NETWORK, "gone"))
    assert reply_json(reply) == {
        "role": "assistant",
        "parts": [],
        "finish": "error",
        "fault": {"code": "network", "message": "gone"},
    }


def test_a_choice_knows_its_calls() -> None:
    call = ToolCall("c1", "add", "{}")
    assert Reply(choices=(Choice(parts=(Text("x"), call)),)).choice.tool_calls == (call,)
