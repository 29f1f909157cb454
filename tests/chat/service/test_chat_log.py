"""How the chat's facts and preferences are written, and what preferences mean for the settings."""

import pytest

from sightline.chat.core.facts import PairAnswered, PairEdited, PairsStarred
from sightline.chat.core.pair import text_answer
from sightline.chat.service.chat import (
    FACT_FORMAT,
    MOST_FILTERS,
    PREFERENCES_FORMAT,
    Preferences,
    SavedFilter,
    apply_preferences,
    check_preferences,
)
from sightline.errors import Code, Fault
from sightline.journal.journal import FactFormat
from sightline.settings import ChatSettings
from sightline.store.store import Line


def test_what_is_written_is_read_again() -> None:
    data, fact = FACT_FORMAT.encode(PairsStarred(("a", "b"), 2))
    assert FACT_FORMAT.decode(Line(1, 0.0, data)) == fact == PairsStarred(("a", "b"), 2)
    data, preferences = PREFERENCES_FORMAT.encode(Preferences(saved_filters=(SavedFilter("mine", "*"),)))
    assert PREFERENCES_FORMAT.decode(Line(1, 0.0, data)) == preferences


def test_lone_surrogate_is_repaired_in_answers_and_rejected_in_user_text() -> None:
    data, fact = FACT_FORMAT.encode(PairAnswered("a", text_answer("half \ud83d")))
    assert isinstance(fact, PairAnswered)
    assert fact.answer.text == "half \ufffd"
    assert FACT_FORMAT.decode(Line(1, 0.0, data)) == fact
    with pytest.raises(Fault, match="not Unicode") as caught:
        FACT_FORMAT.encode(PairEdited("a", user_text="half \ud83d"))
    assert caught.value.status == 422


@pytest.mark.parametrize(("form", "log"), [(FACT_FORMAT, "chat"), (PREFERENCES_FORMAT, "chat-preferences")])
def test_a_line_that_cannot_be_decoded_is_named_by_log_and_number(form: FactFormat[object], log: str) -> None:
    with pytest.raises(Fault, match=f"line 7 of the log '{log}'") as caught:
        form.decode(Line(7, 0.0, b'{"kind": "sung", "id": "a"}' if log == "chat" else b"7"))
    assert caught.value.code is Code.CONFIG
    assert "newer version" in caught.value.hint


def test_what_was_set_goes_over_what_is_configured_also_where_it_is_the_default() -> None:
    configured = ChatSettings(max_trim_attempts=3, chars_per_token=2.0)
    assert apply_preferences(configured, Preferences()) == configured
    told = apply_preferences(configured, Preferences({"maxTrimAttempts": 10, "preflightTrimming": False}))
    assert told == ChatSettings(chars_per_token=2.0, preflight_trimming=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"maxTrimAttempts": 1000}, "maxTrimAttempts must be a whole number from 0 to 100, not 1000"),
        ({"unheardOf": 1}, 'settings has no key "unheardOf"'),
        ({"estimation": "guess"}, 'estimation must be one of "characters", "model", not "guess"'),
    ],
)
def test_what_cannot_be_is_refused_with_the_names_that_there_are(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(Fault, match=message) as caught:
        apply_preferences(ChatSettings(), Preferences(wrong))
    assert caught.value.status == 422
    assert "maxTrimAttempts" in caught.value.hint


def test_saved_filters_have_names_of_their_own() -> None:
    fine = Preferences({}, (SavedFilter("a", "s1"), SavedFilter("b", "s1")))
    assert check_preferences(fine) is fine
    for names in (["a", "a"], [" "], [str(number) for number in range(MOST_FILTERS + 1)]):
        with pytest.raises(Fault, match="names of their own"):
            check_preferences(Preferences({}, tuple(SavedFilter(name, "") for name in names)))
