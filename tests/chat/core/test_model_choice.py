import pytest

from sightline.chat.core.model_choice import model_at_hand
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Inherited

NEWEST = MessagePair(id="a", model="newest")


@pytest.mark.parametrize(
    ("selected", "topic", "newest", "expected"),
    [
        ("selected", "topic", NEWEST, "selected"),
        ("", "topic", NEWEST, "topic"),
        ("", "", NEWEST, "newest"),
        ("", "", MessagePair(id="a"), "default"),
        ("", "", None, "default"),
    ],
)
def test_the_selected_model_goes_before_all_others(
    selected: str, topic: str, newest: MessagePair | None, expected: str
) -> None:
    assert model_at_hand(selected, Inherited(model=topic), newest, "default") == expected
