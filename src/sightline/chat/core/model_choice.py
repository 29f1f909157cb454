"""Which model the next question is for."""

from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Inherited


def model_at_hand(selected: str, topic: Inherited, newest: MessagePair | None, default: str) -> str:
    """The one that a person selected; while nobody has, the topic's own, that of the newest pair, or the default."""
    return selected or topic.model or ("" if newest is None else newest.model) or default
