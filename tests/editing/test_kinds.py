"""What a message is to its reader."""

import pytest

from sightline.editing.sectioning import kind_of, label_of
from sightline.model.message import Message, Role
from sightline.model.parts import CacheBreakpoint, Image, Link, Opaque, Part, Text, Thinking, ToolCall, ToolResult

CALL, RESULT = ToolCall("c", "Bash", "{}"), ToolResult("c")
PICTURE, FOREIGN = Image(Link("https://example.com/a.png")), Opaque("x", {"type": "compaction"})


@pytest.mark.parametrize(
    ("role", "parts", "kind"),
    [
        ("system", [Text("x")], "system"),
        ("developer", [Text("x")], "developer"),
        ("user", [Text("x")], "user"),
        ("user", [], "user"),
        ("user", [PICTURE], "user"),
        ("user", [RESULT, CacheBreakpoint()], "tool_result"),
        ("user", [RESULT, Text("<system-reminder>\nx")], "tool_result"),
        ("user", [RESULT, Text("and now?")], "user"),
        ("user", [RESULT, PICTURE], "user"),
        ("user", [Text("<system-reminder>x</system-reminder>"), CacheBreakpoint()], "context"),
        ("user", [Text("<environment_context>\n  <cwd>/x")], "context"),
        ("user", [Text("# AGENTS.md instructions for /x")], "context"),
        ("user", [Text("<context>x")], "context"),
        ("user", [Text("<system-reminder>x"), Text("My question")], "user"),
        ("user", [FOREIGN], "other"),
        ("tool", [RESULT], "tool_result"),
        ("assistant", [Text("x"), CALL], "assistant"),
        ("assistant", [CALL, CALL], "tool_call"),
        ("assistant", [Thinking("x"), CALL], "tool_call"),
        ("assistant", [Thinking("x")], "thinking"),
        ("assistant", [], "assistant"),
        ("assistant", [FOREIGN], "other"),
    ],
)
def test_kinds_follow_from_the_role_and_the_parts(role: Role, parts: list[Part], kind: str) -> None:
    assert kind_of(Message(role, tuple(parts))) == kind


def test_a_name_tells_context_and_history() -> None:
    assert kind_of(Message("user", (Text("x"),), "chat_history")) == "history"
    assert kind_of(Message("user", (Text("x"),), "Context-Provider")) == "context"


def label(message: Message, *answered: str) -> str:
    return label_of(message, kind_of(message), 3, answered)


def test_labels_say_what_it_is_and_whom_it_is_about() -> None:
    assert label(Message("system", at="/system")) == "System prompt"
    assert label(Message("system", at="/messages/0")) == "System"
    assert label(Message("user", (Text("x"),))) == "User 3"
    assert label(Message("user", (Text("x"),), "ann")) == "User · ann"
    assert label(Message("assistant", (Text("x"),))) == "Assistant 3"
    assert label(Message("assistant", (Text("x"), CALL, CALL))) == "Assistant · calls Bash"
    assert label(Message("assistant", (Thinking("x"),))) == "Thinking"
    assert label(Message("tool", (RESULT,)), "Bash", "", "Bash") == "Result · Bash"
    assert label(Message("tool", (RESULT,))) == "Result"
    assert label(Message("user", (PICTURE, Text("<system-reminder>x")))) == "Context · system-reminder"
    assert label(Message("user", (Text("# AGENTS.md instructions"),))) == "Context · AGENTS.md"
    assert label_of(Message("user", (PICTURE,)), "context", 1, ()) == "Context"
    assert label_of(Message("user", (Text("x"),)), "context", 1, ()) == "Context"
    assert label(Message("assistant", (FOREIGN,))) == "Other · compaction"
    assert label(Message("assistant", (Opaque("x", {"type": 1}),))) == "Other"
    assert label(Message("assistant", (Opaque("x", 1),))) == "Other"
