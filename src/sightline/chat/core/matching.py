"""A filter prepared for one history, so that a hundred thousand pairs can be searched quickly.

It means the same as `filters.predicate`, but each topic, model and bound is examined once, not once per pair.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from operator import eq, ge, gt, le, lt
from typing import TypeAlias, assert_never

from sightline.chat.core.pair import LifecycleState, MessagePair
from sightline.chat.core.topics import Topics
from sightline.dialects.fault_codes import STATUS
from sightline.errors import Code
from sightline.filters.expression import (
    AgeTerm,
    And,
    ContentTerm,
    DateTerm,
    Everything,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Or,
    OwnModel,
    OwnTopic,
    SetTerm,
    TextTerm,
    TopicTerm,
    meaning,
)
from sightline.filters.fields import SUMS
from sightline.filters.predicate import Value, fits, fold_case, is_filed, literal, matches, occurs, plain
from sightline.model.reply import Usage


class PairWords:
    """The text of question and answer, with a line break between them. A changed pair is read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[MessagePair, str]] = {}

    def of(self, pair: MessagePair) -> str:
        """All text of the pair, in lower case."""
        known = self._known.get(pair.id)
        if known is not None and known[0] is pair:
            return known[1]
        text = f"{fold_case(pair.user_text)}\n{fold_case(pair.assistant_text)}"
        self._known[pair.id] = pair, text
        return text

    def hold(self, words: str, pair: MessagePair) -> bool:
        """Whether this text, in lower case and on one line, occurs in the pair."""
        return words in self.of(pair)


STATES: Mapping[LifecycleState, str] = {
    "idle": "received",
    "sending": "sending",
    "complete": "finished",
    "error": "failed",
}
"""The states of pairs in the filter language's words for exchanges."""


def _usage(name: str) -> Callable[[MessagePair], Value]:
    def count(pair: MessagePair) -> Value:
        usage: Usage | None = None if pair.answer is None else pair.answer.usage
        return None if usage is None else getattr(usage, name)

    return count


_OK = 200
_REFUSALS = (
    Code.INVALID_REQUEST, Code.AUTH, Code.PERMISSION, Code.MODEL_UNKNOWN, Code.CONTEXT_OVERFLOW, Code.RATE_LIMITED,
    Code.QUOTA,
)  # fmt: skip
_REFUSED = {code.value: STATUS[code] for code in _REFUSALS}
"""The HTTP status of a provider's refusal, by code: pairs of older chats have no status of their own."""


def _status(pair: MessagePair) -> Value:
    """The HTTP status of the last send: the provider's own if it refused, 200 for a complete answer, otherwise None."""
    if pair.trouble is not None:
        return pair.trouble.status or _REFUSED.get(pair.trouble.code)
    return _OK if pair.state == "complete" and pair.answer is not None else None


_VALUES: Mapping[str, Callable[[MessagePair], Value]] = {
    "id": lambda pair: pair.id,
    "at": lambda pair: pair.at,
    "model": lambda pair: pair.model,
    "stars": lambda pair: pair.star,
    "flag": lambda pair: pair.flag,
    "attachments": lambda pair: len(pair.attachments),
    "state": lambda pair: STATES[pair.state],
    "status": _status,
    "fault": lambda pair: None if pair.trouble is None else pair.trouble.code,
    "finish": lambda pair: None if pair.answer is None else pair.answer.finish,
    "tool": lambda pair: () if pair.answer is None else pair.answer.tools,
    "time": lambda pair: None if pair.answer is None else pair.answer.seconds,
    "input": _usage("input_tokens"),
    "output": _usage("output_tokens"),
    "cached": _usage("cached_tokens"),
}
FIELDS = frozenset(_VALUES)
"""The fields of a pair, except its topic."""


@dataclass(slots=True)
class PairSubject:
    """A pair and the names of its topics. The value of a field that only exchanges have is None."""

    pair: MessagePair
    path: tuple[str, ...]

    def value(self, name: str) -> Value:
        if name == "topic":
            return self.path
        read = _VALUES.get(name)
        return None if read is None else read(self.pair)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the question or in the answer."""
        return occurs(pattern, f"{self.pair.user_text}\n{self.pair.assistant_text}")


Test: TypeAlias = Callable[[MessagePair], bool]

_COMPARED = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBERS: Mapping[str, Callable[[MessagePair], float]] = {"stars": lambda pair: pair.star, "at": lambda pair: pair.at}
_NAMES: Mapping[str, Callable[[MessagePair], str]] = {
    "model": lambda pair: pair.model,
    "flag": lambda pair: pair.flag,
    "state": lambda pair: STATES[pair.state],
}


@dataclass(slots=True)
class Matching:
    """Tests for the pairs of a history. `members` has the ids for which a term about the whole list holds."""

    topics: Topics
    now: float
    members: Mapping[SetTerm, frozenset[str]]
    words: PairWords = field(default_factory=PairWords)

    def test(self, expression: Expression) -> Test:
        """Whether the expression holds for a pair."""
        match expression:
            case Everything():
                return lambda _pair: True
            case Not(part=part):
                inner = self.test(part)
                return lambda pair: not inner(pair)
            case And(parts=parts):
                return reduce(_both, map(self.test, parts))
            case Or(parts=parts):
                return reduce(_either, map(self.test, parts))
            case Latest() | OwnTopic() | OwnModel() | InContext():
                ids = self.members[expression]
                return lambda pair: pair.id in ids
            case AgeTerm() | DateTerm() | FlagTerm():
                meant = meaning(expression, self.now)
                return self._generic_test(expression) if isinstance(meant, FlagTerm) else self.test(meant)
            case TopicTerm():
                topics = frozenset(
                    topic.id for topic in self.topics if is_filed(expression, self.topics.path(topic.id))
                )
                return lambda pair: pair.topic in topics
            case TextTerm() | NumberTerm() | ContentTerm():
                return self._field_test(expression)
            case unreachable:
                assert_never(unreachable)

    def _field_test(self, term: TextTerm | NumberTerm | ContentTerm) -> Test:
        if isinstance(term, NumberTerm) and term.field in _NUMBERS:
            number, compared, bound = _NUMBERS[term.field], _COMPARED[term.operator], term.number
            return lambda pair: compared(number(pair), bound)
        if isinstance(term, TextTerm) and term.field in _NAMES and term.pattern:
            name, pattern = _NAMES[term.field], term.pattern
            fitting = cache(lambda value: fits(pattern, value))
            return lambda pair: fitting(name(pair))
        if isinstance(term, NumberTerm) and not FIELDS.intersection(SUMS.get(term.field, (term.field,))):
            return lambda _pair: False  # no pair has such a number
        words = plain(term.pattern) if isinstance(term, ContentTerm) else None
        return (
            self._generic_test(term) if words is None or "\n" in words else partial(self.words.hold, fold_case(words))
        )

    def _generic_test(self, term: Expression) -> Test:
        return lambda pair: matches(term, PairSubject(pair, ()), now=self.now)


def of_topic(pairs: Iterable[MessagePair], topic: str, count: int | None) -> frozenset[str]:
    """The pairs of a topic, or only the newest `count` of them."""
    own = [pair.id for pair in pairs if pair.topic == topic]
    return frozenset(own if count is None else own[max(0, len(own) - count) :])


def of_model(pairs: Iterable[MessagePair], model: str) -> frozenset[str]:
    """The pairs whose question was sent to this model."""
    pattern = literal(model)
    fitting = cache(lambda value: fits(pattern, value))
    return frozenset(pair.id for pair in pairs if fitting(pair.model))


def latest(pairs: Sequence[MessagePair], count: int) -> frozenset[str]:
    return frozenset(pair.id for pair in pairs[max(0, len(pairs) - count) :])


def _both(left: Test, right: Test) -> Test:
    return lambda pair: left(pair) and right(pair)


def _either(left: Test, right: Test) -> Test:
    return lambda pair: left(pair) or right(pair)
