"""A pair as the filter language sees it."""

from collections.abc import Callable, Mapping

from sightline.chat.core.pair import LifecycleState, MessagePair
from sightline.filters.pattern import occurs
from sightline.filters.predicate import Value
from sightline.model.usage import Usage

STATES: Mapping[LifecycleState, str] = {
    "idle": "received",
    "sending": "sending",
    "complete": "finished",
    "error": "failed",
}
"""The states of pairs in the words that the language has for exchanges."""


def _usage(name: str) -> Callable[[MessagePair], Value]:
    def count(pair: MessagePair) -> Value:
        usage: Usage | None = None if pair.answer is None else pair.answer.usage
        return None if usage is None else getattr(usage, name)

    return count


_VALUES: Mapping[str, Callable[[MessagePair], Value]] = {
    "id": lambda pair: pair.id,
    "at": lambda pair: pair.at,
    "model": lambda pair: pair.model,
    "stars": lambda pair: pair.star,
    "flag": lambda pair: pair.flag,
    "attachments": lambda pair: len(pair.attachments),
    "state": lambda pair: STATES[pair.state],
    "fault": lambda pair: None if pair.trouble is None else pair.trouble.code,
    "finish": lambda pair: None if pair.answer is None else pair.answer.finish,
    "tool": lambda pair: () if pair.answer is None else pair.answer.tools,
    "time": lambda pair: None if pair.answer is None else pair.answer.seconds,
    "input": _usage("input_tokens"),
    "output": _usage("output_tokens"),
    "cached": _usage("cached_tokens"),
}
FIELDS = frozenset(_VALUES)
"""What is known of a pair, its topic apart."""


class PairSubject:
    """A pair and the names of its topics. Fields that only exchanges have are not known of it."""

    __slots__ = ("pair", "path")

    def __init__(self, pair: MessagePair, path: tuple[str, ...]) -> None:
        self.pair = pair
        self.path = path

    def value(self, name: str) -> Value:
        """The value of a field."""
        if name == "topic":
            return self.path
        read = _VALUES.get(name)
        return None if read is None else read(self.pair)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the question or in the answer."""
        return occurs(pattern, f"{self.pair.user_text}\n{self.pair.assistant_text}")
