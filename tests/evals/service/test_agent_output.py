import json

import pytest

from sightline.errors import Fault
from sightline.evals.service.command_target import read_output
from sightline.model.parts import ToolCall, ToolResult
from sightline.model.reply import Usage


def lines(*events: object) -> bytes:
    return b"\n".join(json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("data", [b"Paris\n", b'{"city": "Paris"}', b"[1]", b"{not json"])
def test_what_is_no_report_is_the_answer_itself(data: bytes) -> None:
    seen = read_output(data)
    assert (seen.text, seen.usage, seen.tools) == (data.decode().strip(), None, ())
    assert len(seen.messages) == 1


def test_agentv_s_report_is_read() -> None:
    report = {
        "output": [
            {"role": "user", "content": "left out"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"tool": "search", "input": {"q": "x"}, "output": "found", "id": "t1", "duration_ms": 250},
                    {"tool": "save", "input": {}, "output": {"why": "no"}, "status": "error"},
                    {"tool": "wait", "input": "text"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Done"}, {"type": "text", "value": "now"}]},
            "odd",
        ],
        "token_usage": {"input": 10, "output": 4, "cached": 3},
        "cost_usd": 0.25,
        "duration_ms": 1500,
    }
    seen = read_output(json.dumps(report).encode())
    assert (seen.text, seen.cost, seen.seconds) == ("Done\nnow", 0.25, 1.5)
    assert seen.usage == Usage(input_tokens=10, output_tokens=4, cached_tokens=3)
    assert [(use.name, use.arguments, use.result, use.is_error, use.seconds) for use in seen.tools] == [
        ("search", {"q": "x"}, "found", False, 0.25),
        ("save", {}, '{"why":"no"}', True, None),
        ("wait", "text", "", False, None),
    ]
    assert [message.role for message in seen.messages] == ["assistant", "tool", "tool", "assistant"]
    assert [part.id for part in seen.messages[0].parts if isinstance(part, ToolCall)] == ["t1", "call_2", "call_3"]


def test_the_last_words_may_stand_by_themselves() -> None:
    assert read_output(b'{"text": "Paris"}').text == "Paris"
    assert len(read_output(b'{"text": "Paris"}').messages) == 1
    both = read_output(b'{"text": "Paris", "output": [{"role": "assistant", "content": "I think: Paris"}]}')
    assert (both.text, len(both.messages)) == ("Paris", 1)
    assert read_output(b'{"output": "Paris"}').text == "Paris"
    assert [read_output(data).is_traced for data in (b"Paris", b'{"text": "Paris"}', b'{"output": "Paris"}')] == [
        False
    ] * 3
    assert both.is_traced


def test_the_events_of_codex_are_read() -> None:
    seen = read_output(
        b"a word for people\n{broken\n"
        + lines(
            {"type": "thread.started", "thread_id": "t"},
            {"type": "item.completed", "item": {"id": "i1", "type": "reasoning", "text": "hm"}},
            {
                "type": "item.completed",
                "item": {
                    "id": "i2",
                    "type": "command_execution",
                    "command": "ls",
                    "aggregated_output": "a.txt",
                    "exit_code": 0,
                    "status": "completed",
                },
            },
            {
                "type": "item.completed",
                "item": {
                    "id": "i3",
                    "type": "mcp_tool_call",
                    "server": "s",
                    "tool": "t",
                    "arguments": {"a": 1},
                    "status": "failed",
                    "error": {"message": "no"},
                },
            },
            {
                "type": "item.completed",
                "item": {"id": "i4", "type": "file_change", "changes": [], "status": "completed"},
            },
            {"type": "item.completed", "item": {"id": "i5", "type": "web_search", "query": "x"}},
            {"type": "error", "message": "a warning that it survived"},
            {"type": "item.completed", "item": {"id": "i6", "type": "agent_message", "text": "Paris"}},
            {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9}},
        ),
        "codex",
    )
    assert (seen.text, seen.requests) == ("Paris", 1)
    assert seen.usage == Usage(input_tokens=100, output_tokens=9, cached_tokens=60)
    assert [(use.name, use.result, use.is_error) for use in seen.tools] == [
        ("shell", "a.txt", False),
        ("s__t", '{"message":"no"}', True),
        ("apply_patch", "completed", False),
        ("web_search", "", False),
    ]


@pytest.mark.parametrize(
    ("form", "data", "words"),
    [
        ("codex", lines({"type": "turn.failed", "error": {"message": "no quota"}}), "no quota"),
        ("codex", b"nothing", "did not come to the end of its turn"),
        ("claude", b"nothing", "did not end"),
        ("claude", lines({"type": "result", "is_error": True, "result": "Invalid API key"}), "Invalid API key"),
        ("claude", lines({"type": "result", "is_error": True, "subtype": "error_max_turns"}), "error_max_turns"),
    ],
)
def test_an_agent_that_failed_has_no_answer(form: str, data: bytes, words: str) -> None:
    with pytest.raises(Fault, match=words):
        read_output(data, form)  # type: ignore[arg-type]


def test_the_events_of_claude_are_read() -> None:
    seen = read_output(
        lines(
            {"type": "system", "subtype": "init"},
            {
                "type": "assistant",
                "message": {
                    "content": [
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                    ]
                },
            },
            {
                "type": "user",
                "message": {
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}]},
                        {"type": "text", "text": "x"},
                    ]
                },
            },
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "One file."}]}},
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "result": "One file.",
                "total_cost_usd": 0.5,
                "duration_ms": 2000,
                "num_turns": 2,
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 20,
                    "cache_creation_input_tokens": 3,
                    "output_tokens": 7,
                },
            },
        ),
        "claude",
    )
    assert (seen.text, seen.cost, seen.seconds, seen.requests) == ("One file.", 0.5, 2.0, 2)
    assert seen.usage == Usage(input_tokens=28, output_tokens=7, cached_tokens=20, cache_write_tokens=3)
    (use,) = seen.tools
    assert (use.name, use.arguments, use.result) == ("Bash", {"command": "ls"}, "a.txt")
    assert [part.id for message in seen.messages for part in message.parts if isinstance(part, ToolResult)] == ["t1"]
    assert read_output(lines({"type": "result", "result": "x"}), "claude").usage is None


def test_a_call_without_a_result_keeps_how_long_it_took_and_that_it_failed() -> None:
    calls = [{"tool": "look", "duration_ms": 35}, {"tool": "write", "status": "error", "duration_ms": 5}]
    data = json.dumps({"output": [{"role": "assistant", "content": "Done.", "tool_calls": calls}]}).encode()
    assert [(use.name, use.seconds, use.is_error) for use in read_output(data, "").tools] == [
        ("look", 0.035, False),
        ("write", 0.005, True),
    ]


def test_a_file_in_an_answer_is_named_and_not_left_out() -> None:
    blocks = [
        {"type": "text", "text": "Here:"},
        {"type": "file", "path": "report.xlsx", "media_type": "application/x"},
        {"type": "image", "source": "data:image/png;base64,AAAA"},
    ]
    data = json.dumps({"output": [{"role": "assistant", "content": blocks}]}).encode()
    assert read_output(data, "").text == "Here:\n[file: report.xlsx]\n[image: data]"
