"""How many tokens a client's request has, where its provider cannot be asked in the client's own words."""

from dataclasses import dataclass, field

from sightline.budget.estimate import Estimate
from sightline.budget.estimator import Estimator
from sightline.catalog.choose import Choice
from sightline.dialects.endpoint import counted, counting_of
from sightline.dialects.registry import dialect
from sightline.engine.asked import Asked
from sightline.engine.memory import Memory
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.request import Request
from sightline.wire.jsontext import decode

MOST_ESTIMATORS = 8
"""So many models' counts are remembered: each remembers some megabytes of text."""

_MOST_BYTES = 256 * 1024
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Counter:
    """Estimates, with what is known of a model and what was learned of it."""

    memory: Memory
    _estimators: dict[tuple[str, str, str], Estimator] = field(default_factory=dict)

    def estimate(self, choice: Choice, request: Request) -> Estimate:
        """The tokens of a request at this provider."""
        estimator = self.estimator(choice)
        estimator.calibrate(self.memory.ratio(choice.provider_name, choice.model, tools=bool(request.tools)))
        return estimator.request(request)

    def uncorrected(self, choice: Choice, request: Request) -> Estimate:
        """The same without what was learned, from which more can be learned."""
        return self.estimator(choice).uncorrected(request)

    def estimator(self, choice: Choice) -> Estimator:
        """The one for this model, which remembers what it has counted."""
        key = choice.provider_name, choice.model, choice.dialect
        estimator = self._estimators.pop(key, None) or Estimator(choice.facts, dialect=choice.dialect)
        self._estimators[key] = estimator  # at the end: the one at the front was left alone for longest
        if len(self._estimators) > MOST_ESTIMATORS:
            del self._estimators[next(iter(self._estimators))]
        return estimator

    def at_once(self, choice: Choice, request: Request, size: int) -> int:
        """About how many tokens it has, in no time: of a large body its size has to tell."""
        if size > _MOST_BYTES:
            return size // _BYTES_PER_TOKEN
        return self.estimate(choice, request).tokens

    def answer(self, asked: Asked, choice: Choice) -> tuple[int, JsonObject]:
        """The tokens of a request that asks for nothing else, and the answer to it."""
        document = decode(asked.body)
        counting = counting_of(asked.dialect)
        if isinstance(document, dict) and isinstance(inner := document.get(counting.wrapper), dict):
            document = inner
        tokens = self.estimate(choice, dialect(asked.dialect).read_request(document)).tokens
        return tokens, {counting.result: tokens}


def told(spoken: str, data: bytes) -> tuple[int | None, Fault | None]:
    """The count that a provider gave, or what is wrong with its answer."""
    try:
        document: Json = decode(data)
        return counted(spoken, document), None
    except Fault as fault:
        return None, fault
