"""Estimates how many tokens a client's request has, if its provider has no such call in the client's dialect."""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.dialects.endpoint import counting_of, read_token_count
from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.memory import Memory
from sightline.exchange.reply_reader import read_so_far
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text, media_of
from sightline.model.reply import Reply, Usage, is_complete, possible
from sightline.model.request import Message, Request, parts_of
from sightline.tokens.calibration import digest_chain, is_credible
from sightline.tokens.estimate import Estimate
from sightline.tokens.estimator import Estimator
from sightline.wire.jsontext import decode

MOST_ESTIMATORS = 8
"""How many models' estimators are kept: each caches some megabytes of text."""

_MOST_BYTES = 256 * 1024
_BYTES_PER_TOKEN = 4
_LARGEST_COUNTED = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """Estimates tokens with what is known and was learned about a model. At most `most` estimators are kept."""

    memory: Memory
    most: int = MOST_ESTIMATORS
    _estimators: dict[tuple[str, str, str], Estimator] = field(default_factory=dict)

    def estimate(self, choice: ModelChoice, request: Request) -> Estimate:
        """The estimated tokens of a request at this provider."""
        provider, model, estimator = choice.provider_name, choice.model, self.calibrate(choice, request)
        if not self.memory.has_counted:
            return estimator.request(request)
        known = self.memory.longest_counted(digest_chain(provider, model, request))
        return estimator.request(request) if known is None else estimator.estimate_continuation(request, *known)

    def learn(self, choice: ModelChoice, request: Request, usage: Usage) -> None:
        """Learn from the provider's count of this request."""
        raw = self.raw_estimate(choice, request)
        self.take(choice, request, raw, usage, digest_chain(choice.provider_name, choice.model, request))

    def take(self, choice: ModelChoice, request: Request, raw: Estimate, usage: Usage, chain: list[str]) -> None:
        """The same for a request that was already examined: `raw` is its estimate by the rules only, `chain` the
        digests that identify it."""
        provider, model, window = choice.provider_name, choice.model, choice.facts.context_window
        kind = {"tools": bool(request.tools), "media": has_media(request)}
        self.memory.learn(provider, model, raw, usage, **kind, window=window)
        if (tokens := usage.input_tokens) is None or not is_credible(raw, tokens, window):
            return
        if (known := self.memory.longest_counted(chain)) is not None and known[0] < len(request.messages):
            new, content = self.calibrate(choice, request).growth(request.messages[known[0] :])
            self.memory.learn_growth(provider, model, content, new, tokens - known[1])
        self.memory.note_count(chain, tokens)

    def calibrate(self, choice: ModelChoice, request: Request, estimator: Estimator | None = None) -> Estimator:
        """The estimator of this model, with everything that was learned for such requests. A caller that keeps an
        estimator passes it, because only the latest few are kept here."""
        estimator, provider, model = estimator or self.estimator(choice), choice.provider_name, choice.model
        kind = {"tools": bool(request.tools), "media": has_media(request)}
        estimator.calibrate(*self.memory.ratios(provider, model, **kind))
        return estimator

    def note(self, choice: ModelChoice, request: Request, tokens: int) -> None:
        """Note the provider's answer to a call for the token count of this request."""
        self.memory.note_count(digest_chain(choice.provider_name, choice.model, request), tokens)

    def raw_estimate(self, choice: ModelChoice, request: Request) -> Estimate:
        """The estimate without what was learned, from which more can be learned."""
        return self.estimator(choice).estimate_by_rules(request)

    def estimator(self, choice: ModelChoice) -> Estimator:
        """The estimator for this model, which caches its counts."""
        key = choice.provider_name, choice.model, choice.dialect
        estimator = self._estimators.pop(key, None) or Estimator(choice.facts, dialect=choice.dialect)
        self._estimators[key] = estimator  # at the end: the first one has been unused for longest
        if len(self._estimators) > self.most:
            del self._estimators[next(iter(self._estimators))]
        return estimator

    def at_once(self, choice: ModelChoice, request: Request, size: int) -> int:
        """Roughly how many tokens the request has, quickly: a large body is judged by its size."""
        if size > _MOST_BYTES:
            return size // _BYTES_PER_TOKEN
        return self.estimate(choice, request).tokens

    def estimate_usage(self, choice: ModelChoice, body: bytes, reply: Reply) -> Usage | None:
        """The usage of a response of which the provider did not report all counts: the reported counts, and an estimate
        of the rest, marked as such. `body` is the one that was sent. None if nothing has to be estimated, or the body
        cannot be."""
        counted = possible(reply.usage) or Usage()
        asked = counted.input_tokens or self._estimate_body(choice, body)
        if asked is None:
            return None
        estimator = self.estimator(choice)
        parts = (part for each in reply.choices for part in each.parts)
        written = max(counted.output_tokens or 0, sum(estimator.part(part).tokens for part in parts))
        if (asked, written) == (counted.input_tokens, counted.output_tokens):
            return None
        return replace(counted, input_tokens=asked, output_tokens=written, is_estimated=True)

    def with_estimate(self, choice: ModelChoice, body: bytes, reply: Reply, response: Callable[[], bytes]) -> Reply:
        """The reply with an estimated usage, if the provider has not reported it. `body` is the one that was sent.
        `response` returns what arrived; it is parsed if the reply has no parts, because only its ending was parsed
        before."""
        reported = possible(reply.usage)
        if self.is_plausible(choice, reported):
            return reply
        reported = self._drop_implausible_prompt(choice, body, reported)
        if is_complete(reported):
            return reply
        is_read = any(each.parts for each in reply.choices)
        read = reply if is_read else read_so_far(choice.dialect, response())
        usage = self.estimate_usage(choice, body, replace(read, usage=reported))
        return reply if usage is None else replace(reply, usage=usage)

    def is_plausible(self, choice: ModelChoice, usage: Usage | None) -> bool:
        """Whether the provider has reported all counts, and no prompt larger than the context of the model. `usage`
        contains only its plausible counts."""
        if not is_complete(usage):
            return False
        window = choice.facts.context_window
        return window is None or (usage.input_tokens or 0) <= window

    def _drop_implausible_prompt(self, choice: ModelChoice, body: bytes, usage: Usage | None) -> Usage | None:
        """The usage without its prompt tokens if these exceed the context of the model, and are more than twice the
        estimate. The context alone does not decide: the size known here may be out of date."""
        window = choice.facts.context_window
        if usage is None or window is None or (usage.input_tokens or 0) <= window:
            return usage
        asked = self._estimate_body(choice, body)
        if asked is None or (usage.input_tokens or 0) <= 2 * asked:
            return usage
        return Usage(output_tokens=usage.output_tokens, tier=usage.tier, region=usage.region, cost=usage.cost)

    def _estimate_body(self, choice: ModelChoice, body: bytes) -> int | None:
        # All requests wait while one is counted. Most of a long conversation was counted with the turn before it: then
        # 250 KB take 1 ms, otherwise 30 ms.
        if len(body) > _LARGEST_COUNTED:
            return None
        spoken = dialect(choice.dialect)
        texts = None if spoken.plain_texts is None else spoken.plain_texts.request(body)
        if texts is not None:  # as in most bodies; nothing else in them takes tokens
            messages = [Message(role, tuple(map(Text, said))) for role, said in texts]  # type: ignore[arg-type]
            return max(1, self.estimate(choice, Request(messages=tuple(messages))).tokens)
        request = read_body(choice.dialect, body)
        return None if request is None else max(1, self.estimate(choice, request).tokens)

    def answer(self, request: ClientRequest, choice: ModelChoice) -> tuple[int, JsonObject]:
        """The estimated tokens of a request that asks only for their count, and the response to it."""
        document = decode(request.body)
        counting = counting_of(request.dialect)
        if isinstance(document, dict) and isinstance(inner := document.get(counting.wrapper), dict):
            document = inner
        tokens = self.estimate(choice, dialect(request.dialect).read_request(document)).tokens
        return tokens, {counting.result: tokens}


def read_body(spoken: str, body: bytes) -> Request | None:
    """The request in a body of this dialect. None if it cannot be parsed: its provider may still accept it."""
    try:
        document = decode(body)
        return dialect(spoken).read_request(document) if isinstance(document, dict) else None
    except Fault:
        return None


def has_media(request: Request) -> bool:
    """Whether there are pictures, files or sound among the messages."""
    return bool(media_of(parts_of(request.messages)))


def read_count(spoken: str, data: bytes) -> tuple[int | None, Fault | None]:
    """The count in a provider's response, or the fault in it."""
    try:
        document: Json = decode(data)
        return read_token_count(spoken, document), None
    except Fault as fault:
        return None, fault
