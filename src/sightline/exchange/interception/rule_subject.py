"""What the filters of rules can read of a request: when it is about to be sent, or before its exchange has begun."""

from functools import cached_property

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.rules import Interception
from sightline.exchange.interception.holds import Holds
from sightline.filters.predicate import Value, occurs
from sightline.model.exchange import Received
from sightline.store.digest import Digest, digest_of
from sightline.store.entries import FactEntry
from sightline.store.summary import DIGESTED, FIELDS, ExchangeSubject, Summary, summary_of, with_digest


def rule_line(
    received: FactEntry,
    request: ClientRequest,
    choice: ModelChoice,
    *,
    at: float,
    losses: int = 0,
    tools: tuple[str, ...] = (),
) -> Summary:
    """The line of a request in the traffic list, as far as it is known: `received` is the first fact of the exchange,
    `at` the time of the decision. `tools` are the tools that the reply calls, once it has arrived."""
    return replace(
        summary_of(received.exchange, (received,), lambda _provider, _model: None),
        at=at,
        path=request.path,
        provider=choice.provider_name,
        losses=losses,
        tools=tools,
    )


def subject_of(exchange: Exchange, *, at: float, tools: tuple[str, ...] = ()) -> "RuleSubject":
    """The filter subject of an exchange that has begun; see `rule_line`."""
    request, received = exchange.request, exchange.recorder.received
    line = rule_line(received, request, exchange.choice, at=at, losses=exchange.losses, tools=tools)
    return RuleSubject(line, request.dialect, request.body)


class RuleSubject:
    """What the filters of rules can read of a request with this line, dialect and body. The body is parsed only if a
    filter needs its text."""

    def __init__(self, line: Summary, dialect: str, body: bytes) -> None:
        self._line = line
        self._dialect = dialect
        self._body = body

    def value(self, name: str) -> Value:
        """The value of a field."""
        line = with_digest(self._line, self._digest) if FIELDS.get(name) in DIGESTED else self._line
        return ExchangeSubject(line, self.says).value(name)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the request."""
        digest = self._digest
        return any(occurs(pattern, text) for text in (digest.new_text, *digest.system))

    @cached_property
    def _digest(self) -> Digest:
        return digest_of(self._dialect, self._body)


class _EarlySubject(RuleSubject):
    """The same for a request whose exchange has not begun. It tracks what the filters read: `is_same` stays True while
    that is the same for all requests of one route, `is_known` while nothing was missing."""

    is_same = True
    is_known = True

    def value(self, name: str) -> Value:
        """The value of a field."""
        if name == "id":
            self.is_known = False
        elif name == "at" or FIELDS.get(name) in DIGESTED:
            self.is_same = False
        return super().value(name)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the request."""
        self.is_same = False
        return super().says(pattern)


class RouteRules:
    """Whether the rules let requests with one head and one model pass, checked before an exchange begins.

    If a filter has read only what these requests have in common, the result is the same for the next of them. It is
    cached until the mode or the rules change.
    """

    __slots__ = ("_dialect", "_holds", "_known", "_line")

    def __init__(self, holds: Holds, received: Received, request: ClientRequest, choice: ModelChoice) -> None:
        self._holds = holds
        self._dialect = request.dialect
        self._line = rule_line(FactEntry("", 0, 0.0, received), request, choice, at=0.0)
        self._known: tuple[Interception, bool] | None = None

    def allows(self, body: bytes, now: float) -> bool:
        """Whether a request with this body, at this time of day, is neither held nor dropped, and neither are the calls
        of its reply. Also False if that cannot be known yet. This uses up no rule."""
        holds, known = self._holds, self._known
        if known is not None and known[0] is holds.interception:
            return known[1]
        subject = _EarlySubject(replace(self._line, at=now), self._dialect, body)
        is_allowed = holds.allows(subject) and subject.is_known
        if subject.is_same:
            self._known = holds.interception, is_allowed
        return is_allowed
