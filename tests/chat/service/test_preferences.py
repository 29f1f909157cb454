"""What a person has set, over what is configured."""

import pytest

from sightline.chat.core.sizing import ChatSettings
from sightline.chat.service.preferences import (
    MOST_FILTERS,
    Preferences,
    SavedFilter,
    apply_preferences,
    check_preferences,
)
from sightline.errors import Fault


def test_what_was_set_goes_over_what_is_configured_also_where_it_is_the_default() -> None:
    configured = ChatSettings(max_trim_attempts=3, chars_per_token=2.0)
    assert apply_preferences(configured, Preferences()) == configured
    told = apply_preferences(configured, Preferences({"maxTrimAttempts": 10, "preflightTrimming": False}))
    assert told == ChatSettings(chars_per_token=2.0, preflight_trimming=False)


@pytest.mark.parametrize("wrong", [{"maxTrimAttempts": 1000}, {"unheardOf": 1}, {"estimation": "guess"}])
def test_what_cannot_be_is_refused_with_the_names_that_there_are(wrong: dict[str, object]) -> None:
    with pytest.raises(Fault, match="the settings cannot be so") as caught:
        apply_preferences(ChatSettings(), Preferences(wrong))  # type: ignore[arg-type]
    assert caught.value.status == 422
    assert "maxTrimAttempts" in caught.value.hint


def test_saved_filters_have_names_of_their_own() -> None:
    fine = Preferences({}, (SavedFilter("a", "s1"), SavedFilter("b", "s1")))
    assert check_preferences(fine) is fine
    for names in (["a", "a"], [" "], [str(number) for number in range(MOST_FILTERS + 1)]):
        with pytest.raises(Fault, match="names of their own"):
            check_preferences(Preferences({}, tuple(SavedFilter(name, "") for name in names)))
