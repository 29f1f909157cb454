"""Which model the next question goes to."""

from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Inherited


def model_at_hand(selected: str, topic: Inherited, newest: MessagePair | None, default: str) -> str:
    """The model that the user selected; else the topic's, that of the newest pair, or the default."""
    return selected or topic.model or ("" if newest is None else newest.model) or default
