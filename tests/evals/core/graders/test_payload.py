from sightline.evals.core.graders.finding import Grading, GradingSubject
from sightline.evals.core.graders.grade import as_one
from sightline.evals.core.graders.payload import payload_for_assertion, payload_of
from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, TextSegment
from sightline.model.json import Json
from sightline.model.parts import FileId, Image, Inline, Link, Text, ToolCall, ToolResult
from sightline.model.reply import Usage
from tests.grading_stage import message

OBSERVED = CaseObservation(
    asked=(message("user", "weather?"),),
    messages=(
        message("assistant", "I look.", ToolCall(id="1", name="search", arguments='{"q": 1}')),
        message("tool", ToolResult(id="1", parts=(Text(text="sunny"),))),
        message("assistant", "Sunny."),
    ),
    text="Sunny.",
    tools=(
        ToolUse(name="search", arguments={"q": 1}, result="sunny", id="1", seconds=0.5),
        ToolUse(name="search", is_error=True),
    ),
    usage=Usage(input_tokens=10, output_tokens=2, cached_tokens=4),
    cost=0.01,
    seconds=1.5,
    requests=2,
    question="@[User]: weather?",
)


def payload(observation: CaseObservation = OBSERVED, **grading: object) -> dict[str, Json]:
    return payload_of(GradingSubject(observation, Grading(**grading)), None)


def test_command_payload_has_the_fields_agentv_graders_read() -> None:
    told = payload_of(
        GradingSubject(OBSERVED, Grading(criteria="be right", metadata={"k": 1}, input_files=("a",))), {"c": 1}
    )
    assert set(told) >= {
        "criteria", "expected_output", "output", "messages", "input", "input_files", "metadata", "trace",
        "trace_summary", "token_usage", "cost_usd", "duration_ms", "start_time", "end_time", "file_changes",
        "workspace_path", "config",
    }  # fmt: skip
    assert (told["criteria"], told["output"], told["metadata"], told["config"]) == (
        "be right",
        "Sunny.",
        {"k": 1},
        {"c": 1},
    )
    assert (told["token_usage"], told["cost_usd"], told["duration_ms"]) == (
        {"input": 10, "output": 2, "cached": 4}, 0.01, 1500,
    )  # fmt: skip
    assert told["input"] == [{"role": "user", "content": "weather?"}]
    assert told["trace_summary"] == {
        "event_count": 2,
        "tool_calls": {"search": 2},
        "error_count": 1,
        "tool_durations": {"search": [500.0]},
        "llm_call_count": 2,
    }


def test_messages_carry_calls_with_what_came_of_them() -> None:
    asked, first, result, last = payload()["messages"]
    assert asked == {"role": "user", "content": "weather?"}
    assert first == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"tool": "search", "input": {"q": 1}, "output": "sunny", "id": "1", "status": "ok", "duration_ms": 500.0}
        ],
    }
    assert (result, last) == ({"role": "tool", "content": "sunny"}, {"role": "assistant", "content": "Sunny."})


def test_call_without_details_is_given_as_the_model_wrote_it() -> None:
    observation = CaseObservation(messages=(message("assistant", ToolCall(id="9", name="x", arguments="{}")),))
    assert payload(observation)["messages"][0]["tool_calls"] == [{"tool": "x", "input": "{}", "id": "9"}]
    timeless = CaseObservation(messages=observation.messages, tools=(ToolUse(name="x", id="9", is_error=True),))
    (call,) = payload(timeless)["messages"][0]["tool_calls"]
    assert call["status"] == "error"
    assert "duration_ms" not in call  # where AgentV's SDK wants a number, null is refused with everything else


def test_what_is_not_known_is_null() -> None:
    told = payload(CaseObservation())
    assert [told[name] for name in ("token_usage", "cost_usd", "duration_ms", "metadata", "config")] == [None] * 5


def test_pictures_are_blocks_with_their_source() -> None:
    asked = message(
        "user",
        "see",
        Image(source=Inline(media_type="image/png", data="QQ==")),
        Image(source=Link(url="http://x/y.png")),
        Image(source=FileId(id="f")),
    )
    (told,) = payload(CaseObservation(), messages=(asked,))["input"]
    assert told["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "media_type": "image/png", "source": "data:image/png;base64,QQ=="},
        {"type": "image", "media_type": "", "source": "http://x/y.png"},
        {"type": "image", "media_type": "", "source": ""},
    ]


def test_structured_result_is_written_as_json() -> None:
    asked = message("tool", ToolResult(id="1", structured={"n": 1}))
    assert payload(CaseObservation(), messages=(asked,))["input"][0]["content"] == '{"n":1}'


def test_what_is_expected_is_a_list_of_messages() -> None:
    assert payload()["expected_output"] == []
    assert payload(expected_value={"a": 1})["expected_output"] == [{"role": "assistant", "content": {"a": 1}}]
    plain = CaseMessage(role="assistant", segments=(TextSegment("four"), CallSegment("add", {"n": 2}, id="1")))
    assert payload(expected=(plain,))["expected_output"] == [
        {"role": "assistant", "content": "four", "tool_calls": [{"tool": "add", "input": {"n": 2}, "id": "1"}]}
    ]
    assert payload(expected=(plain,), expected_value={"a": 1})["expected_output"][0]["content"] == {"a": 1}
    mixed = (TextSegment("see"), FileSegment("a.md"), ImageSegment("b.png"), CallSegment("add"))
    (told,) = payload(expected=(CaseMessage(role="user", segments=mixed),), expected_value={})["expected_output"]
    assert told["content"] == [
        {"type": "text", "text": "see"},
        {"type": "file", "path": "a.md"},
        {"type": "image", "path": "b.png"},
    ]
    assert told["tool_calls"] == [{"tool": "add", "input": None}]


def test_assertion_payload_has_only_the_basic_fields() -> None:
    assert payload_for_assertion(GradingSubject(OBSERVED, Grading(criteria="be right")), "Rain.") == {
        "input": "@[User]: weather?",
        "output": "Sunny.",
        "expected_output": "Rain.",
        "criteria": "be right",
        "metadata": None,
    }


def test_expected_results_are_placed_in_their_calls() -> None:
    def result(text: str, **more: str) -> CaseMessage:
        return CaseMessage(role="tool", segments=(TextSegment(text),), **more)

    calls = tuple(CallSegment(name, {}, number) for name, number in (("a", "1"), ("b", ""), ("c", ""), ("d", "")))
    told = payload(
        expected=(
            CaseMessage(role="assistant", segments=calls),
            result('{"results": [1]}', call_id="1"),
            result("sunny", name="b"),
            result("3"),
            result("nobody asked", call_id="9"),
        )
    )
    expected = told["expected_output"]
    assert [call.get("output") for call in expected[0]["tool_calls"]] == [{"results": [1]}, "sunny", "3", None]
    assert [each["role"] for each in expected] == ["assistant", *["tool"] * 4]


def test_payload_has_nothing_that_agentvs_sdk_would_reject() -> None:
    observation = CaseObservation(
        asked=(message("developer", "Be brief."),),
        tools=(ToolUse(name="search", arguments={"q": 1}, result="x", id="1"),),
        usage=Usage(input_tokens=1, output_tokens=2),
    )
    told = payload(observation, expected_value=[1, 2])
    assert [each["role"] for each in told["input"]] == ["system"]
    assert told["token_usage"] == {"input": 1, "output": 2}
    assert payload(CaseObservation(usage=Usage(input_tokens=1)))["token_usage"] is None
    assert told["expected_output"] == [{"role": "assistant", "content": "[1,2]"}]
    assert told["trace"]["events"] == [
        {
            "event_id": "message-0",
            "type": "message",
            "message": {"role": "system", "content": "Be brief."},
            "ordinal": 0,
        },
        {
            "event_id": "tool-0",
            "type": "tool_call",
            "tool": {"name": "search", "call_id": "1", "input": {"q": 1}, "output": "x", "status": "ok"},
            "ordinal": 1,
        },
    ]


def test_the_trace_holds_the_input_and_everything_after_it_in_order() -> None:
    told = payload()
    assert told["trace"]["messages"] == told["messages"]
    assert [(each["type"], each["event_id"], each.get("parent_event_id")) for each in told["trace"]["events"]] == [
        ("message", "message-0", None),
        ("message", "message-1", None),
        ("tool_call", "message-1-tool-0", "message-1"),
        ("message", "message-2", None),
        ("message", "message-3", None),
        ("tool_call", "tool-0", None),
        ("final_response", "final-response", "message-3"),
    ]
    assert [each["ordinal"] for each in told["trace"]["events"]] == list(range(7))


def test_a_whole_conversation_holds_its_input_once() -> None:
    turn = CaseObservation(asked=(message("user", "hi"),), messages=(message("assistant", "Hello."),))
    assert [each["role"] for each in payload(as_one([turn]))["messages"]] == ["user", "assistant"]
