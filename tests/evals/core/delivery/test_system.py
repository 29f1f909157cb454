from sightline.dialects.dialect import SystemPolicy
from sightline.evals.core.delivery.delivery import with_system
from sightline.model.message import Message
from sightline.model.parts import Image, Link, Text

PICTURE = Image(Link("https://x/y.png"))


def said(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(role, (Text(text),), bare=True) for role, text in pairs)  # type: ignore[arg-type]


TALK = said(("system", "one"), ("system", "two"), ("user", "hi"), ("system", "later"), ("user", "go"))


def told(
    messages: tuple[Message, ...], policy: SystemPolicy, prompt: str = "", guidelines: str = ""
) -> tuple[list[tuple[str, list[str]]], list[str]]:
    arranged, notes = with_system(messages, policy, prompt, guidelines)
    words = [
        (each.role, [part.text if isinstance(part, Text) else "picture" for part in each.parts]) for each in arranged
    ]
    return words, [note.kind for note in notes]


def test_in_place_nothing_moves() -> None:
    assert with_system(TALK, "in_place", "", "") == (TALK, ())


def test_in_place_what_is_put_in_front_joins_a_leading_system_message() -> None:
    words, notes = told(TALK, "in_place", "prompt", "rules")
    assert words[:2] == [("system", ["prompt\n\nrules\n\none"]), ("system", ["two"])]
    assert words[3] == ("system", ["later"])
    assert notes == ["merged"]


def test_in_place_it_is_a_message_of_its_own_before_anybody_else() -> None:
    words, notes = told(said(("user", "hi")), "in_place", "", "rules")
    assert words == [("system", ["rules"]), ("user", ["hi"])]
    assert notes == []
    assert told((), "in_place", "prompt") == ([("system", ["prompt"])], [])


def test_leading_system_messages_become_one() -> None:
    words, notes = told(TALK, "merge_leading", "prompt")
    assert words[0] == ("system", ["prompt\n\none\n\ntwo"])
    assert words[2] == ("system", ["later"])
    assert notes == ["merged", "merged"]


def test_all_system_messages_become_one_and_the_move_is_told() -> None:
    words, notes = told(TALK, "merge_all", "prompt", "rules")
    assert words == [("system", ["prompt\n\nrules\n\none\n\ntwo\n\nlater"]), ("user", ["hi"]), ("user", ["go"])]
    assert notes == ["moved", "merged", "merged"]


def test_a_conversation_without_system_messages_stays_as_it_is() -> None:
    assert told(said(("user", "hi")), "merge_all") == ([("user", ["hi"])], [])
    assert told((), "merge_all") == ([], [])


def test_pictures_in_a_system_message_keep_their_place() -> None:
    messages = (Message("system", (Text("one"), PICTURE, Text("two"))), *said(("system", "three")))
    assert told(messages, "merge_all", "prompt")[0] == [("system", ["prompt\n\none", "picture", "two\n\nthree"])]
