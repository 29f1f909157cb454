from sightline.cli.evals.report import message_lines, part_text
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Image, Inline, Link, Refusal, Text, Thinking, ToolCall, ToolResult


def test_messages_stand_under_their_roles() -> None:
    messages = (
        Message("user", (Text("one\ntwo"), Image(Inline("image/png", "aGk=")))),
        Message("assistant", (Thinking("so"), ToolCall("c1", "find", '{"q":1}'))),
        Message("tool", (ToolResult("c1", (Text("found"),), "find"),)),
    )
    assert list(message_lines(messages)) == [
        "  user",
        "    one",
        "    two",
        "    <image image/png>",
        "  assistant",
        "    (thinking) so",
        '    → find({"q":1})',
        "  tool",
        "    ← find: found",
    ]


def test_every_part_has_words() -> None:
    assert part_text(Refusal("No.")) == "No."
    assert part_text(Image(Link("http://127.0.0.1/a.png"))) == "<image by its address>"
    assert part_text(CacheBreakpoint()) == "<CacheBreakpoint>"
    assert part_text(ToolResult("c1", ())) == "← c1: "
