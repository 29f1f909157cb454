import msgspec
import pytest

from sightline.chat.core.settings import ChatSettings


def test_settings_have_the_names_and_defaults_of_the_workflow() -> None:
    settings = ChatSettings()
    assert (settings.chars_per_token, settings.user_request_allowance, settings.max_trim_attempts) == (3.5, 100, 10)
    changed = ChatSettings(
        chars_per_token=4, user_request_allowance=600, max_trim_attempts=3, assistant_response_allowance=1
    )
    assert msgspec.to_builtins(changed) == {
        "charsPerToken": 4,
        "userRequestAllowance": 600,
        "assistantResponseAllowance": 1,
        "maxTrimAttempts": 3,
    }


@pytest.mark.parametrize(
    "wrong",
    [{"charsPerToken": 0}, {"userRequestAllowance": -1}, {"maxTrimAttempts": 101}, {"estimation": "guess"}, {"cpt": 4}],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, ChatSettings)
