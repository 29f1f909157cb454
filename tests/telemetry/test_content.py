from sightline.model.message import Message
from sightline.model.parts import Image, Link, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice
from sightline.model.request import Request
from sightline.telemetry.spans import input_messages, output_message, system_parts

REQUEST = Request(
    messages=(
        Message("system", (Text(text="Be brief."),)),
        Message("user", (Text(text="hi"), Image(source=Link("http://x")))),
        Message("assistant", (Thinking(text="hm"), Thinking(), ToolCall(id="c", name="ls", arguments="{}"))),
        Message("tool", (ToolResult(id="c", parts=(Text(text="a"), Text(text="b"))),)),
        Message("tool", (ToolResult(id="d", structured={"k": 1}),)),
    )
)


def test_instructions_stand_apart_from_the_conversation() -> None:
    assert system_parts(REQUEST) == [{"type": "text", "content": "Be brief."}]
    assert input_messages(REQUEST) == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}, {"type": "image"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "thinking"},
                {"type": "tool_call", "id": "c", "name": "ls", "arguments": "{}"},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "ab"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "d", "response": {"k": 1}}]},
    ]


def test_an_answer_says_why_it_ended() -> None:
    assert output_message(Choice(parts=(Refusal(text="no"),), finish="tool_calls")) == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "no"}],
        "finish_reason": "tool_call",
    }
    assert output_message(Choice())["finish_reason"] == "error"
