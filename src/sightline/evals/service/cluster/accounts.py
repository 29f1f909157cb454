"""What a host counts at home: requests and tokens, what answers teach of limits and sizes, and money."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

from sightline.catalog.choose import ModelChoice
from sightline.evals.service.cluster.line import HostLine
from sightline.evals.service.cluster.messages import (
    Admit,
    CostSpent,
    HowLong,
    Learned,
    Observed,
    RequestCounted,
    RequestReleased,
    Settled,
    Uncounted,
    Waiting,
)
from sightline.evals.service.spending import Spending
from sightline.exchange.memory import Memory
from sightline.model.usage import Usage
from sightline.tokens.calibration import Calibration
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Ledger, LimitName, Reason, SentRequest, Wait
from sightline.tokens.rate_headers import allowances

_WAITS = frozenset({"retry-after", "retry-after-ms", "date"})


@dataclass(frozen=True, slots=True)
class FarSent(SentRequest):
    """A request that home has counted as number `n`."""

    n: int = 0


class FarLedger(Ledger):
    """Counts here as any ledger does, and tells home, where all hosts are counted together."""

    def __init__(self, line: HostLine) -> None:
        super().__init__()
        self._line = line
        self._numbers = count(1)

    def add_request(self, provider: str, model: str, tokens: int, at: float) -> SentRequest:
        """A request went out."""
        sent = super().add_request(provider, model, tokens, at)
        n = next(self._numbers)
        self._line.tell(RequestCounted(n, provider, model, tokens))
        return FarSent(sent.provider, sent.model, sent.tokens, sent.at, n)

    def settle(self, sent: SentRequest, tokens: int, at: float) -> SentRequest:
        """It took so many tokens."""
        assert isinstance(sent, FarSent)  # there are no others here
        self._line.tell(Settled(sent.n, tokens))
        now = super().settle(sent, tokens, at)
        return FarSent(now.provider, now.model, now.tokens, now.at, sent.n)

    def unsent(self, sent: SentRequest, at: float) -> None:
        """It never left."""
        assert isinstance(sent, FarSent)  # there are no others here
        self._line.tell(Uncounted(sent.n))
        super().unsent(sent, at)

    def observe_headers(self, provider: str, model: str, headers: Mapping[str, str], at: float) -> None:
        """These headers came with an answer; home hears of those that say something about limits."""
        super().observe_headers(provider, model, headers, at)
        told = {name: value for name, value in headers.items() if "limit" in name or "codex" in name or name in _WAITS}
        if allowances(told, at) or _WAITS & told.keys() - {"date"}:
            self._line.tell(Observed(provider, model, told))


class FarAdmitted:
    """A request that may go."""

    def __init__(self, line: HostLine, n: int) -> None:
        self._line = line
        self._n = n

    def release(self) -> None:
        """It goes now, or never will."""
        if self._n:
            self._line.tell(RequestReleased(self._n))
            self._n = 0


class FarRates:
    """Asks home when requests may go."""

    def __init__(self, line: HostLine) -> None:
        self._line = line

    def counts_tokens(self, choice: ModelChoice) -> bool:
        """Yes: another host may have been told of a limit."""
        return True

    async def admit(self, choice: ModelChoice, tokens: int) -> FarAdmitted:
        """Wait until home lets it go."""
        question = Admit(choice.provider_name, choice.model, tokens, choice.facts)
        n, _ = await self._line.ask(question, bool)
        return FarAdmitted(self._line, n)

    async def wait(self, choice: ModelChoice, tokens: int) -> Wait:
        """How long a request would have to wait."""
        question = HowLong(choice.provider_name, choice.model, tokens, choice.facts)
        _, told = await self._line.ask(question, Waiting)
        return Wait(told.seconds, cast(Reason, told.reason), cast(LimitName, told.limit), told.allowed)


class FarSpending(Spending):
    """Tells home of all that is spent."""

    def __init__(self, line: HostLine) -> None:
        super().__init__()
        self._line = line

    def spend(self, cost: float | None) -> None:
        """So much more."""
        super().spend(cost)
        if cost is None or cost:
            self._line.tell(CostSpent(cost))


class FarMemory(Memory):
    """What is learned here goes home; nothing is kept in a folder."""

    def __init__(self, line: HostLine, calibration: bytes, folder: Path, now: Callable[[], float]) -> None:
        super().__init__(folder, now)
        self._line = line
        self.ledger = FarLedger(line)
        if calibration:
            self.calibration = Calibration.from_json(calibration)

    def learn(
        self,
        provider: str,
        model: str,
        raw: Estimate,
        usage: Usage,
        *,
        tools: bool,
        media: bool = False,
        window: int | None = None,
    ) -> None:
        """The provider has counted what was estimated."""
        super().learn(provider, model, raw, usage, tools=tools, media=media, window=window)
        self._line.tell(Learned(provider, model, raw, usage, tools, media, window))

    def save(self) -> None:
        """Home does."""
