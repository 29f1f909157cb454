import pytest

from sightline.chat.core.facts import PairAnswered, PairEdited, PairsStarred
from sightline.chat.core.pair import text_answer
from sightline.chat.service.chat import fact_in, fact_line, preferences_in, preferences_line
from sightline.chat.service.preferences import Preferences, SavedFilter
from sightline.errors import Code, Fault
from sightline.store.logbook import Line
from sightline.wire.secrets import Redaction

KEY = "sk-planted-0123456789"
REDACTION = Redaction((KEY,))


def test_a_fact_is_read_as_it_was_written() -> None:
    data, fact = fact_line(PairsStarred(("a", "b"), 2), REDACTION)
    assert fact == PairsStarred(("a", "b"), 2)
    assert fact_in(Line(1, 0.0, data)) == fact


def test_configured_keys_are_in_no_line() -> None:
    data, fact = fact_line(PairEdited("a", user_text=f"my {KEY}"), REDACTION)
    assert KEY.encode() not in data
    assert fact_in(Line(1, 0.0, data)) == fact
    wanted = Preferences(saved_filters=(SavedFilter("mine", KEY),))
    data, preferences = preferences_line(wanted, REDACTION)
    assert KEY.encode() not in data
    assert preferences_in(Line(1, 0.0, data)) == preferences != wanted


def test_what_a_model_cut_in_two_is_mended_and_a_person_is_asked_to() -> None:
    data, fact = fact_line(PairAnswered("a", text_answer("half \ud83d")), REDACTION)
    assert isinstance(fact, PairAnswered)
    assert fact.answer.text == "half \ufffd"
    assert fact_in(Line(1, 0.0, data)) == fact
    with pytest.raises(Fault, match="not Unicode") as caught:
        fact_line(PairEdited("a", user_text="half \ud83d"), REDACTION)
    assert caught.value.status == 422


@pytest.mark.parametrize(("reading", "log"), [(fact_in, "chat"), (preferences_in, "chat-preferences")])
def test_what_cannot_be_understood_is_named_by_log_and_line(reading: object, log: str) -> None:
    with pytest.raises(Fault, match=f"line 7 of the log '{log}'") as caught:
        reading(Line(7, 0.0, b"{"))  # type: ignore[operator]
    assert caught.value.code is Code.CONFIG
