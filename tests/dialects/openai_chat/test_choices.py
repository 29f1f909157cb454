"""What whole replies and chunks have in common: order, ids of calls, reasoning, usage."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.openai_chat import choices
from sightline.dialects.openai_chat.choices import CALL, THOUGHT, WORDS, CallAssembly, CallIds, Fragment, Order
from sightline.dialects.openai_chat.usage import read_usage, write_usage
from sightline.dialects.signatures import wrap
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    FieldReceived,
    SignatureReceived,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.parts import Citation
from sightline.model.reply import TokenLogprob, Usage
from sightline.model.report import Report
from tests.dialects.openai_chat.telling import calling, chunk, heard
from tests.dialects.reports import added_at, refused_at

chat: Any = choices


@pytest.mark.parametrize(
    ("word", "has_calls", "has_refusal", "finish", "detail"),
    [
        ("stop", False, False, "stop", None),
        ("stop", True, False, "tool_calls", None),
        ("stop", False, True, "refusal", None),
        ("tool_calls", False, False, "stop", None),
        ("tool_calls", True, True, "tool_calls", None),
        ("function_call", True, False, "tool_calls", "function_call"),
        ("length", True, False, "length", None),
        ("content_filter", False, True, "content_filter", None),
        ("model_length", False, False, "length", "model_length"),
        ("eos", False, False, "stop", "eos"),
    ],
)
def test_finish_matches_the_reply_content(word, has_calls, has_refusal, finish, detail):
    assert chat.read_finish(word, has_calls=has_calls, has_refusal=has_refusal) == finish
    assert chat.finish_detail(word) == detail


@pytest.mark.parametrize(
    ("finish", "has_refusal", "word"),
    [
        ("stop", False, "stop"),
        ("tool_calls", False, "tool_calls"),
        ("length", False, "length"),
        ("content_filter", False, "content_filter"),
        ("refusal", True, "stop"),
        ("refusal", False, "content_filter"),
        ("pause", False, "stop"),
        (None, False, "stop"),
    ],
)
def test_every_finish_has_a_word(finish, has_refusal, word):
    assert chat.write_finish(finish, has_refusal=has_refusal) == word


def test_a_choice_has_its_number_or_its_position():
    assert chat.read_index({"index": 3}, 0, "/c") == 3
    assert chat.read_index({}, 2, "/c") == 2


@pytest.mark.parametrize("index", [-1, 128, 10**30, "x", 1.5])
def test_a_number_that_no_choice_has_is_a_fault(index):
    assert refused_at(chat.read_index, {"index": index}, 0, "/c") == "/c/index"


def test_content_is_a_string_or_a_list_of_words_and_reasoning():
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]}
    unknown: Any = {"type": "image", "url": "x"}
    strange: Any = {"type": "thinking", "thinking": [{"type": "reference", "ids": [1]}]}
    assert chat.read_content("hi", 0, "/m", set(chat.PART_KEYS)) == [TextReceived(1, "hi", at="/m")]
    assert (
        chat.read_content("", 0, "/m", set(chat.PART_KEYS))
        == chat.read_content(None, 0, "/m", set(chat.PART_KEYS))
        == []
    )
    parts = [thought, {"type": "text", "text": "yes"}, unknown, strange, {"type": "thinking"}]
    assert chat.read_content(parts, 2, "/m", set(chat.PART_KEYS)) == [
        ThinkingReceived(0, "hm", 2, at="/m/0"),
        TextReceived(1, "yes", 2, at="/m/1/text"),
        FieldReceived("/m/2", unknown),
        FieldReceived("/m/3", strange),
        FieldReceived("/m/4", {"type": "thinking"}),
    ]


@pytest.mark.parametrize("content", [7, {"type": "text"}, ["words"]])
def test_other_content_is_a_fault(content):
    with pytest.raises(Fault):
        chat.read_content(content, 0, "/m", set(chat.PART_KEYS))


def test_only_the_assistants_role_is_taken_for_granted():
    assert (
        chat.read_role({"role": "assistant"}, "/m")
        == chat.read_role({}, "/m")
        == chat.read_role({"role": None}, "/m")
        == []
    )
    assert chat.read_role({"role": "function"}, "/m") == [FieldReceived("/m/role", "function")]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_text", "cot_summary", "thinking"])
def test_reasoning_goes_by_many_names(key):
    assert chat.read_thinking({key: "hm"}, 1, "/m") == [ThinkingReceived(0, "hm", 1, at=f"/m/{key}")]
    assert chat.read_thinking({key: {"text": "hm"}}, 1, "/m") == [ThinkingReceived(0, "hm", 1, at=f"/m/{key}")]
    assert chat.read_thinking({key: ["odd"]}, 1, "/m") == [FieldReceived(f"/m/{key}", ["odd"])]
    assert chat.read_thinking({key: {"odd": 1}}, 1, "/m") == [FieldReceived(f"/m/{key}", {"odd": 1})]
    assert chat.read_thinking({key: ""}, 1, "/m") == chat.read_thinking({key: None}, 1, "/m") == []


def test_identical_reasoning_under_two_keys_is_read_once():
    assert len(chat.read_thinking({"reasoning": "hm", "reasoning_content": "hm"}, 0, "/m")) == 1
    assert len(chat.read_thinking({"reasoning": "hm", "reasoning_content": "well"}, 0, "/m")) == 2


def test_signature_is_read_with_its_signer_and_id():
    assert chat.read_thinking({"reasoning_opaque": "c2ln", "cot_id": "cot_1"}, 0, "/m") == [
        SignatureReceived(0, "c2ln", "openai-chat", 0, "cot_1")
    ]
    assert chat.read_reasoning_signature({"cot_id": "cot_1"}, "/m") == (None, "openai-chat", "cot_1")
    assert chat.read_reasoning_signature({"reasoning_opaque": wrap("sig", "anthropic", "th_1")}, "/m") == (
        "sig",
        "anthropic",
        "th_1",
    )
    assert chat.read_reasoning_signature({}, "/m") is None


def test_an_annotation_is_a_citation_with_its_place_in_the_text():
    inner = {"url": "https://example.org", "title": "T", "start_index": 2, "end_index": 5}
    note: Any = {"type": "url_citation", "url_citation": inner}
    [event] = chat.read_citations([note], 0, "/a")
    assert event.citation == Citation(url="https://example.org", title="T", start=2, end=5, value=note, at="/a/0")
    assert chat.write_citation(event.citation, 10)["url_citation"]["start_index"] == 12


def test_a_routers_excerpt_is_the_quotation_and_other_fields_are_kept():
    """OpenRouter quotes the page that it found as `content`."""
    inner = {"url": "https://example.org", "title": "T", "content": "It rains.", "start_index": 2, "end_index": 5}
    [event] = chat.read_citations([{"type": "url_citation", "url_citation": {**inner, "rank": 1}, "id": "a"}], 0, "/a")
    assert (event.citation.cited_text, event.citation.extras) == ("It rains.", {"id": "a", "url_citation": {"rank": 1}})


def test_annotations_of_other_kinds_are_kept_as_they_are():
    [event] = chat.read_citations([{"type": "file_citation", "url_citation": {"url": "x"}}], 0, "/a")
    assert (event.citation.url, event.citation.start) == ("", None)
    assert chat.write_citation(event.citation, 0) is None
    odd: Any = {"CodeVulnerability": [1]}
    assert chat.read_citations(odd, 0, "/a") == [FieldReceived("/a", odd)]
    assert chat.read_citations(None, 0, "/a") == []


def test_logprobs_survive_reading_and_writing():
    token = {"token": "é", "logprob": -1, "bytes": [195, 169], "top_logprobs": [{"token": "e", "logprob": -2.5}]}
    [event] = chat.read_logprobs({"content": [token], "refusal": [{"token": "no", "logprob": -0.5}]}, 1, "/l")
    assert (event.choice, event.at) == (1, "/l")
    assert event.tokens == (TokenLogprob("é", -1.0, (195, 169), (TokenLogprob("e", -2.5),)), TokenLogprob("no", -0.5))
    assert chat.write_token(event.tokens[0]) == {
        "token": "é",
        "logprob": -1.0,
        "bytes": [195, 169],
        "top_logprobs": [{"token": "e", "logprob": -2.5, "bytes": None}],
    }


def test_a_logprob_that_no_double_holds_is_none():
    for odd in (-(10**400), "x"):
        [event] = chat.read_logprobs({"content": [{"token": "a", "logprob": odd}]}, 0, "/l")
        assert event.tokens[0].logprob == 0.0


def test_unrecognised_logprobs_are_reported_as_fields():
    assert chat.read_logprobs(None, 0, "/l") == chat.read_logprobs([], 0, "/l") == []
    assert chat.read_logprobs([-0.5], 0, "/l") == [FieldReceived("/l", [-0.5])]
    older = chat.read_logprobs({"content": None, "tokens": ["a"]}, 0, "/l")
    assert older[1:] == [FieldReceived("/l/tokens", ["a"])]


WORDS_MOVED, THOUGHTS_MOVED = "order of words and calls", "order of reasoning and words"


@pytest.mark.parametrize(
    ("noted", "lost"),
    [
        ([(THOUGHT, 0), (THOUGHT, 1), (WORDS, 2), (WORDS, 3), (CALL, 4), (CALL, 5)], []),
        ([(CALL, 4), (WORDS, 2), (THOUGHT, 0)], []),
        ([(WORDS, 0), (CALL, 1), (WORDS, 2), (CALL, 3)], [("/2", WORDS_MOVED)]),
        ([(CALL, 1), (WORDS, 2), (WORDS, 3)], [("/2", WORDS_MOVED), ("/3", WORDS_MOVED)]),
        ([(WORDS, 0), (THOUGHT, 1)], [("/1", THOUGHTS_MOVED)]),
        ([(CALL, 0), (THOUGHT, 1)], [("/1", THOUGHTS_MOVED)]),
        ([(WORDS, 2), (CALL, 1)], [("/2", WORDS_MOVED)]),
    ],
)
def test_what_a_message_holds_elsewhere_is_a_loss_of_content(noted, lost):
    report = Report()
    order = Order(report)
    for rank, number in noted:
        order.note(rank, number, f"/{number}")
    assert [(loss.pointer, loss.what) for loss in report.losses] == lost
    assert {loss.severity for loss in report.losses} <= {"content"}


def test_an_id_that_was_given_stays():
    assert CallIds(0).of("functions.f:0", 0, "resp_1") == "functions.f:0"


def test_made_ids_differ_within_a_reply_and_between_replies():
    ids, other = CallIds(0), CallIds(1)
    assert [ids.of("", number, "resp_1") for number in (0, 1)] == ["call_resp_1_0", "call_resp_1_1"]
    assert other.of("", 0, "resp_1") == "call_resp_1_1_0"
    assert CallIds(0).of("", 0, "resp_2") == "call_resp_2_0"
    assert CallIds(0).of("", 0, None) == "call_0"


def test_a_made_id_is_none_that_was_given_before():
    ids = CallIds(0)
    assert [ids.of("call_1", 0, ""), ids.of("", 1, "")] == ["call_1", "call_1_"]


def test_a_made_id_is_short_and_plain_whatever_the_reply_is_called():
    first, second = (CallIds(0).of("", 0, f"chatcmpl-{'x' * 90}é:{number}") for number in (1, 2))
    assert first != second
    assert len(first) <= 40
    assert first.removeprefix("call_").removesuffix("_0").isalnum()


COUNTS = st.none() | st.integers(0, 10**9)


def test_the_whole_prompt_and_the_whole_output_are_what_the_wire_already_counts():
    details: Any = {"cached_tokens": 60, "audio_tokens": 0}
    usage = read_usage({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": details}, "/usage")
    assert usage == Usage(input_tokens=100, output_tokens=20, cached_tokens=60, at="/usage")


def test_finer_counts_are_kept_where_they_count_something():
    usage = read_usage(
        {
            "prompt_tokens": 5,
            "completion_tokens": 6,
            "total_tokens": 11,
            "cost": 0.02,
            "completion_tokens_details": {"audio_tokens": 3, "rejected_prediction_tokens": 0, "reasoning_tokens": 2},
        },
        "/usage",
    )
    assert usage.reasoning_tokens == 2
    assert usage.extras == {"cost": 0.02, "completion_tokens_details": {"audio_tokens": 3}}


def test_reasoning_that_is_counted_beside_the_output_becomes_part_of_it():
    details: Any = {"completion_tokens_details": {"reasoning_tokens": 40}}
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 55, **details}, "")
    assert (usage.output_tokens, usage.reasoning_tokens, usage.extras) == (45, 40, {})


def test_total_that_is_not_the_sum_is_kept_as_reported():
    assert read_usage({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 9}, "").extras == {"total_tokens": 9}
    assert read_usage({"total_tokens": 9}, "").extras == {"total_tokens": 9}


def test_a_count_that_is_no_number_is_a_fault_with_its_place():
    assert (
        refused_at(read_usage, {"prompt_tokens_details": {"cached_tokens": "many"}}, "/usage")
        == "/usage/prompt_tokens_details/cached_tokens"
    )


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_counts_survive_writing_and_reading(said, written, cached, stored, thought):
    usage = Usage(
        input_tokens=said,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=thought,
    )
    report = Report()
    again = read_usage(write_usage(usage, report), "")
    assert (again.input_tokens, again.output_tokens) == (said or 0, written or 0)
    assert (again.cached_tokens, again.cache_write_tokens, again.reasoning_tokens) == (cached, stored, thought)
    assert added_at(report) == [
        f"/usage/{key}" for key, count in (("prompt_tokens", said), ("completion_tokens", written)) if count is None
    ]


def part(index=0, call_id=None, name=None, arguments=None):
    """An entry of a delta's `tool_calls`; None leaves the field out."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    fields = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


def calls(*fragments):
    """Id, name and arguments of each call that the fragments amount to, one fragment in a chunk."""
    begun: dict[int, tuple[str, str]] = {}
    arguments: dict[int, list[str]] = {}
    for event in heard(*(calling(fragment) for fragment in fragments), chunk({}, "tool_calls")):
        if isinstance(event, ToolCallBegun):
            begun[event.part] = (event.id, event.name)
        elif isinstance(event, ArgumentsReceived):
            arguments.setdefault(event.part, []).append(event.fragment)
    return [(*begun[number], "".join(arguments.get(number, []))) for number in sorted(begun)]


A, B = '{"a":1}', '{"b":2}'
QUIRKS = {
    "id only on the first fragment": [
        part(0, "x", "f", ""), part(0, arguments='{"a"'), part(0, arguments=":1}"),
        part(1, "y", "g", ""), part(1, arguments=B),
    ],
    "id repeated on each fragment": [
        part(0, "x", "f", '{"a"'), part(0, "x", arguments=":1}"),
        part(1, "y", "g", '{"b"'), part(1, "y", arguments=":2}"),
    ],
    "id and name repeated on each fragment": [
        part(0, "x", "f", '{"a"'), part(0, "x", "f", ":1}"), part(0, "y", "g", '{"b"'), part(0, "y", "g", ":2}"),
    ],
    "both calls at index 0 with different ids": [
        part(0, "x", "f", ""), part(0, arguments=A),
        part(0, "y", "g", ""), part(0, arguments='{"b"'), part(0, arguments=":2}"),
    ],
    "interleaved by id at one index": [
        part(0, "x", "f", '{"a"'), part(0, "y", "g", '{"b"'),
        part(0, "x", arguments=":1}"), part(0, "y", arguments=":2}"),
    ],
    "interleaved by index, id once": [
        part(0, "x", "f", ""), part(1, "y", "g", ""), part(0, arguments='{"a"'), part(1, arguments='{"b"'),
        part(0, arguments=":1}"), part(1, arguments=":2}"),
    ],
    "empty ids on later fragments": [
        part(0, "x", "f", ""), part(0, "", arguments=A), part(1, "y", "g", ""), part(1, "", arguments=B),
    ],
    "no index at all": [
        part(None, "x", "f", ""), part(None, arguments=A), part(None, "y", "g", '{"b"'), part(None, arguments=":2}"),
    ],
    "a null index on later fragments": [
        part(0, "x", "f", ""), {"index": None, "function": {"arguments": A}},
        part(1, "y", "g", ""), {"index": None, "function": {"arguments": B}},
    ],
    "an index that is a string": [
        part("0", "x", "f", A), part("1", "y", "g", '{"b"'), part("1", arguments=":2}"),
    ],
    "the name after the id": [
        part(0, "x"), part(0, name="f"), part(0, arguments=A),
        part(1, "y", arguments='{"b"'), part(1, name="g", arguments=":2}"),
    ],
    "the id after nothing but an index": [
        part(0), part(0, "x", "f", A), part(1, arguments=""), part(1, "y", "g", B),
    ],
    "a whole call in one fragment": [part(0, "x", "f", A), part(1, "y", "g", B)],
    "a whole call told once more at its end": [
        part(0, "x", "f", '{"a"'), part(0, arguments=":1}"), part(0, "x", "f", A),
        part(1, "y", "g", B), part(1, "y", "g", B),
    ],
    "arguments as an object": [
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": {"a": 1}}}, part(1, "y", "g", B),
    ],
}  # fmt: skip

WITHOUT_IDS = {
    "indexes": [part(0, name="f", arguments=""), part(0, arguments=A), part(1, name="g"), part(1, arguments=B)],
    "interleaved by index": [
        part(0, name="f"), part(1, name="g"), part(0, arguments='{"a"'), part(1, arguments='{"b"'),
        part(0, arguments=":1}"), part(1, arguments=":2}"),
    ],
    "neither ids nor indexes": [
        part(None, name="f", arguments='{"a"'), part(None, arguments=":1}"), part(None, name="g", arguments=B),
    ],
    "another name at the same index": [part(0, name="f", arguments=A), part(0, name="g", arguments=B)],
    "name repeated on each fragment": [
        part(0, name="f", arguments='{"a"'), part(0, name="f", arguments=":1}"), part(1, name="g", arguments=B),
    ],
}  # fmt: skip


@pytest.mark.parametrize("fragments", QUIRKS.values(), ids=QUIRKS)
def test_calls_with_ids_are_kept_separate(fragments):
    assert calls(*fragments) == [("x", "f", A), ("y", "g", B)]


def test_an_id_that_a_model_gives_to_several_calls_does_not_join_them():
    assert calls(
        part(0, "x", "f", ""), part(0, arguments=A), part(1, "x", "f", ""), part(1, "x", arguments=B),
        part(1, "x", "f", B), part(2, "x", "g", A),
    ) == [("x", "f", A), ("x", "f", B), ("x", "g", A)]  # fmt: skip


@pytest.mark.parametrize("fragments", WITHOUT_IDS.values(), ids=WITHOUT_IDS)
def test_calls_without_ids_are_kept_separate_and_get_no_id(fragments):
    assert calls(*fragments) == [("", "f", A), ("", "g", B)]


def test_the_same_tool_called_twice_without_ids_is_two_calls():
    assert calls(part(0, name="f", arguments=A), part(0, name="f", arguments=B)) == [("", "f", A), ("", "f", B)]
    by_index = (part(0, name="f"), part(1, name="f"), part(0, arguments=A), part(1, arguments=B))
    assert calls(*by_index) == [("", "f", A), ("", "f", B)]


def test_an_id_that_comes_after_the_name_does_not_make_a_call_without_a_name():
    assert calls(part(0, name="f", arguments='{"a"'), part(0, "late", arguments=":1}")) == [("", "f", A)]


def test_a_new_id_with_a_name_is_a_new_call_even_where_the_last_has_no_id():
    assert calls(part(0, name="f", arguments=A), part(0, "y", "g", B)) == [("", "f", A), ("y", "g", B)]


def test_arguments_that_come_before_the_name_wait_for_it():
    assert calls(part(0, "x", arguments='{"a"'), part(0, name="f", arguments=":1}")) == [("x", "f", A)]


def test_call_without_a_name_is_still_reported():
    assert calls(part(0, "x", arguments="{}")) == [("x", "", "{}")]


def test_fragments_without_index_and_id_continue_the_call_that_was_last_spoken_of():
    assert calls(part(0, "x", "f"), part(1, "y", "g"), part(0, arguments='{"a"'), part(7, arguments=":1}")) == [
        ("x", "f", A),
        ("y", "g", ""),
    ]


def test_a_custom_call_is_free_text_and_never_complete_before_the_end():
    first = {"index": 0, "id": "x", "type": "custom", "custom": {"name": "sh", "input": "{}"}}
    more = {"index": 0, "custom": {"name": "sh", "input": " ls"}}
    events = heard(calling(first), calling(more), calling(part(1, "y", "g", B)), chunk({}, "tool_calls"))
    begun = [event for event in events if isinstance(event, ToolCallBegun)]
    assert [(event.name, event.kind) for event in begun] == [("sh", "custom"), ("g", "function")]
    assert [event.fragment for event in events if isinstance(event, ArgumentsReceived)] == ["{}", " ls", B]
    completed = [index for index, event in enumerate(events) if isinstance(event, ToolCallCompleted)]
    assert min(completed) > events.index(begun[1])


def fragment(arguments, *, index=0, call_id="", name=""):
    return Fragment(index, call_id, name, arguments, "function", "/here")


def test_a_call_is_complete_as_soon_as_the_next_one_begins_after_its_json():
    assembly = CallAssembly(2)
    assert assembly.grow(0, "{") is None
    assembly.add(fragment(A, call_id="x", name="f"))
    assert assembly.add(fragment("", index=1, call_id="y", name="g")) == [
        ToolCallCompleted(4, 2),
        ToolCallBegun(5, "y", "g", 2, at="/here"),
    ]
    assert assembly.finish() == [ToolCallCompleted(5, 2)]


def test_white_space_behind_a_complete_call_is_nothing_and_more_is_a_fault():
    assembly = CallAssembly(0)
    assembly.add(fragment(A, call_id="x", name="f"))
    assembly.add(fragment("", index=1, call_id="y", name="g"))
    assert assembly.add(fragment("\n", call_id="x")) == []
    assert assembly.grow(0, "more") is None
    with pytest.raises(Fault) as caught:
        assembly.add(fragment("more", call_id="x"))
    assert (caught.value.code, caught.value.pointer) == (Code.UPSTREAM_PROTOCOL, "/here")
