from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.delivery.delivery import last_exchanges, turn_messages
from sightline.evals.core.suite import Case, CaseMessage, CaseTurn, TextSegment
from sightline.model.message import Message
from sightline.model.parts import Text


def said(text: str) -> CaseMessage:
    return CaseMessage(role="user", segments=(TextSegment(text),))


def talk(roles: str) -> list[Message]:
    names = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "t": "tool"}
    return [Message(names[role], (Text(str(index)),)) for index, role in enumerate(roles)]  # type: ignore[arg-type]


def kept(roles: str, size: int | None) -> str:
    messages = talk(roles)
    return "".join(roles[messages.index(message)] for message in last_exchanges(messages, size))


def test_a_turn_is_told_after_what_the_model_really_said() -> None:
    case = Case(
        id="a", messages=(said("before"),), turns=tuple(CaseTurn(messages=(said(f"turn {n}"),)) for n in range(3))
    )
    replies = [[Message("assistant", (Text(f"reply {n}"),))] for n in range(2)]
    told = [
        (message.segments if isinstance(message, CaseMessage) else message.parts)[0].text  # type: ignore[union-attr]
        for message in turn_messages(case, 2, replies)
    ]
    assert told == ["before", "turn 0", "reply 0", "turn 1", "reply 1", "turn 2"]
    assert len(turn_messages(case, 0, [])) == 2


def test_without_a_window_all_is_kept() -> None:
    assert kept("suauau", None) == "suauau"


def test_a_window_keeps_system_messages_and_the_last_exchanges() -> None:
    assert kept("suaudau", 2) == "saudau"
    assert kept("su", 5) == "su"


def test_a_window_keeps_the_answer_before_what_is_said_now() -> None:
    assert kept("suau", 1) == "sau"
    assert kept("suauau", 1) == "sau"


def test_a_window_never_opens_on_a_result_without_its_call() -> None:
    assert kept("suatatu", 2) == "satu"
    assert kept("suattu", 1) == "su"
    assert kept("suatt", 1) == "satt"
    assert kept("stt", 1) == "stt"
    assert kept("s", 1) == "s"


@given(st.text("sduat", max_size=12), st.integers(1, 4))
def test_a_window_is_what_it_says(roles: str, size: int) -> None:
    spoken = kept(roles, size).translate({ord("s"): None, ord("d"): None})
    if "u" in roles or "a" in roles:
        assert spoken[0] in "ua"
        assert len(spoken) <= 2 * size or set(spoken[1:]) == {"t"}
    assert roles.endswith(kept(roles, size)[-1:])
