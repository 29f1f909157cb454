"""The tokens of pairs and prompts for one model, with an upper bound that is safe to plan with."""

from copy import copy
from math import ceil, exp, log

from msgspec import structs

from sightline.catalog.facts import Facts
from sightline.chat.core.assembly import messages_of, takes_rounds
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.settings import ChatSettings
from sightline.model.message import Message
from sightline.model.parts import Part, Refusal, Text, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import Tool
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import Estimate, exactly, sum_estimates
from sightline.tokens.estimator import Estimator

_REMEMBERED = 200_000
_ROUNDING = 2


class Sizer:
    """Counts for one model in one dialect, by the settings. Counts of pairs are cached."""

    def __init__(
        self,
        facts: Facts,
        *,
        dialect: str,
        settings: ChatSettings,
        tools: tuple[Tool, ...] = (),
        calibration: Ratio | None = None,
        base_instructions: str = "",
    ) -> None:
        self.dialect = dialect
        self.base_instructions = base_instructions
        """The instructions of the model's family, used if no topic has a system prompt."""
        self.tools = tools
        self.has_rounds = takes_rounds(dialect, has_tools=bool(tools))
        """Whether earlier tool calls are sent to this model."""
        self._by_characters = settings.estimation == "characters"
        self._chars_per_token = settings.chars_per_token
        self._estimator = Estimator(_with_characters(facts, settings.chars_per_token), dialect=dialect)
        self._calibration = calibration
        self._pairs: dict[str, tuple[MessagePair, Estimate]] = {}

    def with_calibration(self, calibration: Ratio | None) -> "Sizer":
        """The same sizer with a new calibration. Cached counts stay."""
        other = copy(self)
        other._calibration = calibration
        return other

    def messages(self, pair: MessagePair) -> tuple[Message, ...]:
        """The messages of a pair for this model."""
        return messages_of(pair, self.dialect, with_rounds=self.has_rounds)

    def pair(self, pair: MessagePair) -> Estimate:
        """What a pair adds to a request."""
        known = self._pairs.get(pair.id)
        if known is not None and known[0] is pair:
            return known[1]
        if len(self._pairs) >= _REMEMBERED:
            self._pairs.clear()
        estimate = sum_estimates(map(self.message, self.messages(pair)))
        self._pairs[pair.id] = pair, estimate
        return estimate

    def cost(self, pair: MessagePair) -> int:
        """The tokens to plan for a pair."""
        return self.cautious(self.pair(pair))

    def message(self, message: Message) -> Estimate:
        """What one message adds to a request."""
        if not self._by_characters:
            return self._estimator.message(message)
        return exactly(sum(map(self._letters, message.parts)), "characters per token")

    def prelude(self, text: str) -> Estimate:
        """The system message, with what every request has."""
        messages = (Message("system", (Text(text),), bare=True),) if text else ()
        if not self._by_characters:
            return self._estimator.estimate_by_rules(Request(messages=messages))
        return sum_estimates(map(self.message, messages))

    def tool_tokens(self) -> Estimate:
        """The tokens of the offered tools."""
        return self._estimator.tools(self.tools)

    def cautious(self, estimate: Estimate) -> int:
        """The number of tokens that it will hardly exceed, by the calibration."""
        if self._calibration is None or estimate.is_exact:
            return estimate.high
        lesson = self._calibration
        trust = lesson.seen / (lesson.seen + 1)
        likely = estimate.tokens * exp(log(lesson.factor) * trust)
        unbelieved = abs(estimate.tokens * lesson.factor - likely)
        return ceil(likely + (estimate.high - estimate.tokens) * lesson.width + unbelieved)

    @property
    def always_added(self) -> int:
        """What every request has on top, by the calibration."""
        if self._calibration is None:
            return 0
        return max(0, ceil(self._calibration.added)) + _ROUNDING

    def _letters(self, part: Part) -> int:
        match part:
            case Text() | Refusal():
                return self._rough_tokens(part.text)
            case ToolCall():
                return self._rough_tokens(part.name + part.arguments)
            case ToolResult():
                return sum(map(self._letters, part.parts))
            case _:
                return self._estimator.part(part).high

    def _rough_tokens(self, text: str) -> int:
        return ceil(len(text) / self._chars_per_token)


def _with_characters(facts: Facts, chars_per_token: float) -> Facts:
    """The facts of a model, with the setting if nothing better is known of its vocabulary."""
    if facts.tokenizer or facts.nearest_tokenizer or facts.chars_per_token is not None:
        return facts
    return structs.replace(facts, chars_per_token=chars_per_token)
