"""What a request will cost in tokens before it is sent, with a band that holds what the provider will report."""

from typing import NamedTuple

from sightline.catalog.facts import Facts
from sightline.dialects.registry import dialect as find_dialect
from sightline.model.message import Message
from sightline.model.parts import Part
from sightline.model.request import Request
from sightline.model.tools import Tool
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly, sum_estimates
from sightline.tokens.message_count import MessageCounter, ToolCounter
from sightline.tokens.text_count import TextCounter

_UNKNOWN_REPLY = (0, 5, 90)
_UNSEEN_HISTORY = 100_000
_STATEFUL = frozenset({"conversation", "cachedContent", "prompt"})
_THINKING_OFF = frozenset({"off", "none"})


class CountedRequest(NamedTuple):
    """The beginning of a request for which the provider has counted so many tokens, with these tools."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    tokens: int


class Estimator:
    """Counts for one model in one dialect. It remembers the counts of texts."""

    def __init__(self, facts: Facts, *, dialect: str, calibration: Ratio | None = None) -> None:
        self._facts = facts
        self._dialect = dialect
        self._calibration = calibration
        self._texts = TextCounter(facts)
        rules = find_dialect(dialect).tokens
        self._messages = MessageCounter(facts, rules, self._texts)
        self._tools = ToolCounter(facts, rules, self._texts, self._messages)
        self._counted_request: CountedRequest | None = None
        self._latest_tools: tuple[tuple[Tool, ...], Estimate] = ((), NOTHING)

    def calibrate(self, calibration: Ratio | None) -> None:
        """Use a newer lesson; nothing is counted again."""
        self._calibration = calibration

    def scale(self, raw: Estimate) -> Estimate:
        """A piece of a request, as the provider's past counts suggest, without what they add to every request."""
        if self._calibration is None or self._texts.is_exact:
            return raw
        return self._calibration.scale(raw)

    def text(self, text: str) -> Estimate:
        """Tokens of a text by itself."""
        return self._texts.count(text)

    def part(self, part: Part) -> Estimate:
        """Tokens of one part."""
        return self._messages.part(part)

    def message(self, message: Message) -> Estimate:
        """Tokens of a message and its frame."""
        return self._messages.message(message)

    def tools(self, tools: tuple[Tool, ...]) -> Estimate:
        """Tokens of all tools together."""
        if self._latest_tools[0] is not tools:
            self._latest_tools = (tools, self._tools.tools(tools))
        return self._latest_tools[1]

    def request(self, request: Request) -> Estimate:
        """Everything that is in the prompt, as the provider's past counts suggest."""
        return self.correct(self.estimate_by_rules(request))

    def estimate_continuation(self, request: Request, counted: int, tokens: int) -> Estimate:
        """The same where the provider has counted so many `tokens` for a request with the first `counted` messages of
        this one: its number, and an estimate of what is new."""
        new = self.scale(sum_estimates(map(self.message, request.messages[counted:])))
        return exactly(tokens, "counted") + new if new.tokens else exactly(tokens, "counted by the provider")

    def continue_from(self, counted: CountedRequest | None) -> None:
        """What the provider has counted of the requests that are looked at now, if anything."""
        self._counted_request = counted

    def whole(self, request: Request, raw: Estimate) -> tuple[Estimate, bool]:
        """A whole request of which the rules alone say `raw`, and whether that rests on the provider's own count."""
        known = self._counted_request
        if known is not None and request.tools == known.tools:
            count = len(known.messages)
            if request.messages[:count] == known.messages:
                return self.estimate_continuation(request, count, known.tokens), True
        return self.correct(raw), False

    def correct(self, raw: Estimate) -> Estimate:
        """What the rules alone say of a whole request, as the provider's past counts suggest."""
        if self._calibration is None:
            return raw
        return self._calibration.correct(raw, within_band=self._texts.is_exact)

    def estimate_by_rules(self, request: Request) -> Estimate:
        """Everything that is in the prompt, by the rules alone: what a provider's count is compared with."""
        total = self._once(request) + sum_estimates(map(self.message, request.messages)) + self.tools(request.tools)
        total += self._tools.output(request.options.format)
        if request.options.previous_response_id is not None or not _STATEFUL.isdisjoint(request.extras):
            unseen = self._facts.context_window or _UNSEEN_HISTORY
            total += Estimate(0, 0, unseen, "history that the provider keeps")
        return total

    def _once(self, request: Request) -> Estimate:
        facts = self._facts
        total = self._reply()
        reasoning = request.options.reasoning
        if (
            facts.thinking_tokens
            and reasoning is not None
            and (reasoning.mode or reasoning.effort) not in _THINKING_OFF
        ):
            total += between(0, facts.thinking_tokens, facts.thinking_tokens * 1.5)
        return total

    def _reply(self) -> Estimate:
        tokens = self._facts.reply_tokens
        if tokens is None:
            return between(*_UNKNOWN_REPLY)
        return exactly(tokens) if self._texts.frames_are_known else between(0, tokens, tokens + 12)
