import pytest

from sightline.agent.core.conversation import DialectCheck
from sightline.dialects.registry import NAMES
from sightline.model.message import Message
from sightline.model.parts import Audio, Image, Inline, Opaque, Text, Thinking, ToolCall

EARS = [DialectCheck(source, spoken) for spoken in NAMES for source in ("", spoken)]


@pytest.mark.parametrize("ear", EARS)
def test_every_dialect_takes_an_ordinary_id_and_an_ordinary_turn(ear: DialectCheck) -> None:
    assert ear.takes_ids(("call_1",))
    assert ear.takes_ids(("call_1", "call_2"), ("call_3",))
    assert ear.takes_part(Text("Hello."))


@pytest.mark.parametrize(
    ("spoken", "again"), [("openai-chat", True), ("openai-responses", True), ("anthropic", False), ("gemini", True)]
)
def test_whether_an_id_may_come_again_is_the_dialect_s_to_say(spoken: str, *, again: bool) -> None:
    assert DialectCheck("", spoken).takes_ids(("a",), ("a",)) is again
    if spoken != "gemini":
        assert not DialectCheck("", spoken).takes_ids(("a", "a"))


def test_without_ids_only_a_dialect_with_names_on_results_can_tell_calls_apart() -> None:
    assert DialectCheck("gemini", "gemini").takes_ids(("", ""))
    assert not DialectCheck("openai-chat", "openai-chat").takes_ids(("",))


def test_an_id_that_a_provider_of_this_dialect_does_not_take() -> None:
    assert not DialectCheck("anthropic", "anthropic").takes_ids(("a.b",))
    assert DialectCheck("", "anthropic").takes_ids(("a.b",)), "the writer spells it in another way"


def test_a_result_is_named_where_the_dialect_or_the_lack_of_an_id_wants_it() -> None:
    call, nameless = ToolCall("a", "f", "{}"), ToolCall("", "f", "{}")
    assert DialectCheck("", "gemini").name_for(call) == "f"
    assert DialectCheck("", "anthropic").name_for(call) is None
    assert DialectCheck("", "anthropic").name_for(nameless) == "f"


def test_parts_that_the_dialect_refuses() -> None:
    own = DialectCheck("anthropic", "anthropic")
    assert not own.takes_part(Text(" "))
    assert not own.takes_part(Thinking("Hm."))
    assert own.takes_part(Thinking("Hm.", signature="c2VhbA==", signed_by="anthropic"))


def test_parts_that_a_result_may_not_hold() -> None:
    picture = Image(Inline("image/png", "aGk="))
    assert not DialectCheck("openai-chat", "openai-chat").takes_in_result(picture)
    assert DialectCheck("", "openai-chat").takes_in_result(picture), "the writer moves it"
    assert DialectCheck("anthropic", "anthropic").takes_in_result(picture)


def test_what_cannot_be_written_or_read_is_not_taken() -> None:
    broken = Message("user", (Opaque("openai-responses", {"type": "message", "role": 7}),))
    ear = DialectCheck("openai-responses", "openai-responses")
    assert ear.round_trip((broken,)) is None
    assert not ear.takes(broken)


def test_sound_that_a_dialect_has_no_place_for_is_left_to_its_writer() -> None:
    assert DialectCheck("anthropic", "anthropic").takes_in_result(Audio(Inline("audio/wav", "aGk=")))
