import pytest

from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import Fold, fold, part_events, update_usage
from sightline.model.parts import Citation, Image, Inline, Opaque, Part, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Unmodelled, Usage, reply_json

STOP: list[StreamEvent] = [Finished("stop"), Ended()]


def folded_parts(*events: StreamEvent) -> tuple[object, ...]:
    return fold([*events, *STOP]).choice.parts


def test_nothing_is_an_empty_reply_that_has_not_finished() -> None:
    assert fold([]) == Reply()


def test_fragments_of_one_part_are_one_text() -> None:
    assert folded_parts(TextReceived(0, "a", at="/x"), TextReceived(0, "b")) == (Text("ab", at="/x"),)


def test_parts_stand_in_the_order_of_their_numbers() -> None:
    parts = folded_parts(TextReceived(5, "late"), ThinkingReceived(1, "early"), RefusalReceived(7, "no"))
    assert parts == (Thinking("early"), Text("late"), Refusal("no"))


def test_texts_grow_each_for_itself() -> None:
    reply = fold([TextReceived(0, "a"), TextReceived(1, "b"), TextReceived(0, "c"), TextReceived(1, "d")])
    assert [part.text for part in reply.choice.parts if isinstance(part, Text)] == ["ac", "bd"]


def test_interleaved_calls_are_kept_apart() -> None:
    parts = folded_parts(
        ToolCallBegun(1, "c1", "add", at="/a"),
        ToolCallBegun(2, "c2", "run", kind="custom", namespace="ns", item="i2"),
        ArgumentsReceived(1, '{"a"'),
        ArgumentsReceived(2, "ls"),
        ArgumentsReceived(1, ":1}"),
        ToolCallCompleted(1),
        ToolCallCompleted(2),
    )
    assert parts == (
        ToolCall("c1", "add", '{"a":1}', at="/a"),
        ToolCall("c2", "run", "ls", kind="custom", namespace="ns", item="i2"),
    )


def test_arguments_of_a_call_whose_beginning_was_lost_are_kept() -> None:
    assert folded_parts(ArgumentsReceived(1, "{}")) == (ToolCall("", "", "{}"),)


def test_reasoning_has_pieces_of_content_and_of_summary() -> None:
    summary = [ThinkingReceived(0, "one", summary=True), ThinkingReceived(0, "two", piece=1, summary=True)]
    assert folded_parts(*summary) == (Thinking("one\n\ntwo", summary=("one", "two")),)
    both = folded_parts(*summary, ThinkingReceived(0, "all of it"))
    assert both == (Thinking("all of it", summary=("one", "two")),)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        (ThinkingReceived(0, "hm"), Thinking("hm", signature="s", signed_by="d", id="r1")),
        (TextReceived(0, "hi"), Text("hi", signature="s", signed_by="d")),
        (ToolCallBegun(0, "c", "f"), ToolCall("c", "f", "", signature="s", signed_by="d")),
        (PartReceived(0, Image(Inline("i", "d"))), Image(Inline("i", "d"), signature="s", signed_by="d")),
        (PartReceived(0, Opaque("d", 1)), Opaque("d", 1)),
    ],
)
def test_a_signature_belongs_to_the_part_that_it_is_for(begun: StreamEvent, expected: object) -> None:
    assert folded_parts(begun, SignatureReceived(0, "s", "d", id="r1")) == (expected,)


def test_a_signature_alone_is_reasoning_without_words() -> None:
    assert folded_parts(SignatureReceived(0, "s", "d")) == (Thinking(signature="s", signed_by="d"),)


def test_citations_belong_to_their_text() -> None:
    cited = Citation(url="https://example.com")
    assert folded_parts(TextReceived(0, "x"), CitationReceived(0, cited)) == (Text("x", citations=(cited,)),)


def test_identity_is_completed_and_never_replaced() -> None:
    reply = fold([Started(model="m"), Started("id", "other", 5), Started("late", "late", 9), *STOP])
    assert (reply.id, reply.model, reply.created) == ("id", "m", 5)


def test_later_counts_override_those_that_they_have() -> None:
    first = Usage(input_tokens=3, output_tokens=1, at="/0", extras={"a": 1})
    second = Usage(output_tokens=7, extras={"b": 2})
    assert fold([UsageReceived(first), UsageReceived(second)]).usage == Usage(
        input_tokens=3, output_tokens=7, at="/0", extras={"a": 1, "b": 2}
    )
    assert update_usage(first, Usage(cached_tokens=0)).cached_tokens == 0


def test_logprobs_gather_and_unmodelled_fields_are_kept() -> None:
    token = TokenLogprob("a", -0.1)
    reply = fold(
        [
            LogprobsReceived((token,), at="/first"),
            LogprobsReceived((token,), at="/second"),
            FieldReceived("/x", 1),
            FrameBroken("/3", "not JSON"),
            *STOP,
        ]
    )
    assert (reply.choice.logprobs, reply.choice.logprobs_at) == ((token, token), "/first")
    assert reply.unmodelled == (Unmodelled("/x", 1), Unmodelled("/3", "not JSON"))


def test_choices_are_folded_each_for_itself_in_the_order_of_their_numbers() -> None:
    reply = fold(
        [
            TextReceived(0, "b", choice=10**9),
            Finished("length", 10**9, "max", "END", at="/f"),
            TextReceived(0, "a"),
            *STOP,
        ]
    )
    assert reply.choices[0].parts == (Text("a"),)
    late = Choice(parts=(Text("b"),), finish="length", detail="max", stop_sequence="END", finish_at="/f")
    assert reply.choices[1:] == (late,)


@pytest.mark.parametrize(("code", "finish"), [(Code.NETWORK, "error"), (Code.CANCELLED, "cancelled")])
def test_a_failure_keeps_what_arrived_and_is_never_a_success(code: Code, finish: str) -> None:
    fault = Fault(code, "gone")
    reply = fold([TextReceived(0, "half"), Finished("stop"), Failed(fault), Ended()], "d")
    assert (reply.choice.parts, reply.choice.finish, reply.fault) == ((Text("half"),), finish, fault)
    assert reply.dialect == "d"


def test_a_fold_can_be_looked_at_while_it_grows() -> None:
    folding = Fold()
    folding.add(TextReceived(0, "a"))
    assert folding.reply.choice.parts == (Text("a"),)
    folding.add(TextReceived(0, "b"))
    assert folding.reply.choice.parts == (Text("ab"),)


def test_what_a_call_needs_in_its_own_dialect_comes_with_its_end() -> None:
    begun = ToolCallBegun(0, "c", "shell", kind="shell")
    reply = fold([begun, ArgumentsReceived(0, "{}"), ToolCallCompleted(0, extras={"environment": None}), *STOP])
    assert reply.choice.parts == (ToolCall("c", "shell", "{}", "shell", extras={"environment": None}),)


@pytest.mark.parametrize(
    "part",
    [
        Text("a", (Citation(url="https://example.com"),), "s", "d", at="/t"),
        Refusal("no", at="/r"),
        Thinking("one\n\ntwo", ("one", "two"), id="i", signature="s", signed_by="d", at="/s"),
        Thinking("all of it", ("one",)),
        Thinking(signature="s", signed_by="d", redacted=True),
        ToolCall("c", "f", "{}", "custom", "ns", "i", "s", "d", at="/c"),
        ToolCall("c", "f", "{}", "shell", extras={"environment": None}),
        Opaque("d", 1),
    ],
)
def test_a_part_is_folded_from_its_own_events(part: Part) -> None:
    assert folded_parts(*part_events(part, 3)) == (part,)


def test_an_empty_signature_is_none() -> None:
    assert part_events(Thinking("hm", signature="", signed_by="d"), 0) == [ThinkingReceived(0, "hm")]


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
