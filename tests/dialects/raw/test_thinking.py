import pytest

from sightline.dialects.raw.thinking import read_seal, read_thinking, write_seal, write_thinking
from sightline.model.parts import Thinking


def inner(part):
    return write_thinking(part)["value"]["thinking"]


@pytest.mark.parametrize(
    "part",
    [
        Thinking("words"),
        Thinking("words", id="t_0", signature="seal", signed_by="raw"),
        Thinking("words", id="t_0", signed_by="raw"),
        Thinking("words", signature="seal", signed_by="anthropic"),
        Thinking("", id="next", signature="seal", signed_by="gemini"),
        Thinking("", id="rs_1", signed_by="openai-responses"),
        Thinking("", signature="data", signed_by="anthropic", redacted=True),
        Thinking("a\n\nb", ("a", "b")),
        Thinking("whole", ("short",), id="rs_2", signature="e", signed_by="openai-responses"),
    ],
)
def test_reasoning_is_written_and_read_back(part):
    assert read_thinking(write_thinking(part), "") == part


def test_it_has_the_form_of_the_editor():
    part = Thinking("words", id="t_0", signature="seal", signed_by="raw")
    assert write_thinking(part) == {
        "type": 2,
        "value": {"type": "thinking", "thinking": {"id": "t_0", "text": "words", "encrypted": "seal"}},
    }


def test_pieces_of_a_summary_are_the_editors_list_of_texts():
    assert inner(Thinking("a\n\nb", ("a", "b"))) == {"text": ["a", "b"]}


def test_a_foreign_seal_names_its_maker():
    assert inner(Thinking("w", signature="s", signed_by="anthropic"))["encrypted"] == "sightline:anthropic::s"


def test_what_only_looks_like_a_wrapped_seal_is_our_own():
    assert read_seal("sightline:raw::x", None) == ("sightline:raw::x", "raw")
    assert read_seal("sightline:gemini:item:x", None) == ("sightline:gemini:item:x", "raw")
    assert write_seal("x", None) == "x"


def test_members_that_are_not_modelled_are_kept_where_they_stand():
    holder = {
        "type": 2,
        "value": {"type": "thinking", "thinking": {"text": "a", "metadata": {"toolId": "c"}}, "more": 1},
        "tokenUsage": 4,
    }
    part = read_thinking(holder, "/0/content/0")
    assert part is not None
    assert part.at == "/0/content/0"
    assert part.extras == {"tokenUsage": 4, "value": {"more": 1, "thinking": {"metadata": {"toolId": "c"}}}}


def test_an_absent_text_is_an_empty_one():
    part = read_thinking({"type": 2, "value": {"type": "thinking", "thinking": {"id": "a"}}}, "")
    assert part == Thinking("", id="a", signed_by="raw")


@pytest.mark.parametrize(
    "thinking",
    [None, 1, {"text": 1}, {"text": ["a", 2]}, {"summary": "s"}, {"id": 1}, {"encrypted": []}, {"redacted": "yes"}],
)
def test_another_form_is_not_reasoning_of_ours(thinking):
    assert read_thinking({"type": 2, "value": {"type": "thinking", "thinking": thinking}}, "") is None


@pytest.mark.parametrize("value", [None, "thinking", {"type": "stateful_marker", "thinking": {"text": "a"}}])
def test_an_opaque_part_of_another_kind_is_not_reasoning(value):
    assert read_thinking({"type": 2, "value": value}, "") is None
