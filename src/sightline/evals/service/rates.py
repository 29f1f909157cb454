"""A target's limits of requests and tokens a minute, held by the one ledger that knows all requests."""

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts
from sightline.errors import Code, Fault
from sightline.tokens.ledger import Ledger, SentRequest
from sightline.transport.clock import Clock
from sightline.transport.retry import format_duration

LONGEST = 900.0
"""Seconds that are waited for a limit. What takes longer is for another day: the run can be gone on with then."""


class Reservation:
    """A request that may go. Until it is on its way the ledger counts it here, so that others do not take its place."""

    def __init__(self, ledger: Ledger, clock: Clock, sent: SentRequest) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sent: SentRequest | None = sent

    def release(self) -> None:
        """It goes now and is counted by whoever sends it, or it never will."""
        if self._sent is not None:
            self._ledger.unsent(self._sent, self._clock.now())
            self._sent = None


class Rates:
    """Lets requests go when their provider's limits allow it."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def counts_tokens(self, choice: ModelChoice) -> bool:
        """Whether it matters how large a request is."""
        limits = self._ledger.limits(choice.provider_name, choice.model, choice.facts)
        return limits.tpm is not None or limits.tpd is not None

    async def admit(self, choice: ModelChoice, tokens: int) -> Reservation:
        """Wait until a request of this size can go. One that never can, or not for long, is a fault."""
        return await self.admit_model(choice.provider_name, choice.model, choice.facts, tokens)

    async def admit_model(self, provider: str, model: str, facts: Facts, tokens: int) -> Reservation:
        """The same for whoever knows of the choice only this."""
        while True:
            now = self._clock.now()
            wait = self._ledger.wait(provider, model, tokens, now, facts)
            if wait.is_over:
                sent = self._ledger.add_request(provider, model, tokens, now)
                return Reservation(self._ledger, self._clock, sent)
            if wait.is_endless:
                message = f"about {tokens} tokens are more than the {wait.limit} of {model} ({wait.allowed:g})"
                raise Fault(Code.REQUEST_TOO_LARGE_FOR_RATE, message, hint="Make the case smaller.")
            if wait.seconds > LONGEST:
                message = f"the limit {wait.limit} of {provider} is used up for {format_duration(wait.seconds)}"
                raise Fault(Code.RATE_LIMITED, message, hint="Go on with the run then: --rerun-failed.")
            await self._clock.sleep(wait.seconds)


def limit_choice(choice: ModelChoice, rpm: int | None, tpm: int | None) -> ModelChoice:
    """The choice with a target's own limits, where they are lower than what is known of the model."""
    facts = msgspec.structs.replace(choice.facts, rpm=_lower(choice.facts.rpm, rpm), tpm=_lower(choice.facts.tpm, tpm))
    return ModelChoice(
        choice.provider_name, choice.provider, choice.model, facts, choice.family, choice.route, choice.arriving
    )


def _lower(known: int | None, wanted: int | None) -> int | None:
    told = [each for each in (known, wanted) if each is not None]
    return min(told) if told else None
