"""Corrections of our estimates, learned from providers' own counts for each model: a factor, and a constant that is
added.

Medians are used, so that a strange count (a cache's accounting, a search whose results were billed) has no effect. A
count that no vocabulary and no hidden prompt explains is ignored until several others agree: one such count, taken for
an addition to every request, would permanently leave no room in the model's window. The factor is separated from the
constant once requests of different sizes were seen. A single observation counts half, and the band covers the rest.

A counted prompt is found again by a chain of digests, one for each message, so that only the new messages of a longer
request of the same conversation are estimated. The chain begins with everything that is not a message: provider, model,
tools, output schema.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import exp, log
from statistics import median
from typing import get_args

import msgspec

from sightline.errors import Code, Fault
from sightline.model.request import Request, of_message, of_tool
from sightline.tokens.estimate import Estimate, between, is_possible
from sightline.tokens.text_count import TextKind
from sightline.wire.cache import BoundedCache

_OBSERVATIONS = 24
_MODELS = 256
_ENOUGH_TO_TELL_APART = 4
_SIZES_APART = 1.5
_PLAUSIBLE = (0.6, 1.67)
_NARROWEST, _WIDEST = 0.15, 2.0
_SPREADS = 4.0
_ROUNDING = 2
_LARGEST = 10**12
_FAR_BELOW, _FAR_ABOVE = 0.4, 2.0
_HIDDEN_PROMPT = 2_000
"""The most tokens that a provider may add to the prompt unseen: templates, guards, instructions for tools."""
_MIN_AGREEING = 3
_ALONE, _A_LITTLE = 4.0, 0.01
_FEW = 2
_MOST_SPREAD = 0.5
_FRAMES, _OFF = 24, 0.015
"""How far a count by the model's own vocabulary may be off because of framing, in tokens and as a share."""
_TOOLS, _MEDIA = "+tools", "+media"
_GROWTH: Mapping[TextKind, str] = {kind: f"+growth:{kind}" for kind in get_args(TextKind)}


class CountObservation(msgspec.Struct, frozen=True, array_like=True):
    """An estimate before any correction, and the provider's count."""

    tokens: int
    low: int
    high: int
    reported: int

    @property
    def is_odd(self) -> bool:
        """Whether the count is so far from the estimate that it is more likely a mistake, unless others agree."""
        return not self.low * _FAR_BELOW <= self.reported <= self.high * _FAR_ABOVE + _HIDDEN_PROMPT


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned about one model, for display. `kind` is what its requests contained: `text`, `tools`, `media` or
    both; or what its conversations grew by: `new words`, `new figures`, `new scripts`. `set_aside` is the number of
    counts that were not learned from, because nothing explains them."""

    model: str
    kind: str
    factor: float
    added: int
    seen: int
    set_aside: int


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The stored form of all observations."""

    version: int
    models: dict[str, list[CountObservation]]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How one model's counts relate to our estimates: times `factor`, plus `added`. `width` is what the band is
    multiplied by, `seen` the number of counts that it is based on. `spread` is the share by which counts were still
    off. With `disproves`, several counts were off by more than is possible if the vocabulary were the model's own."""

    factor: float
    added: float
    width: float
    seen: int
    spread: float = 0.0
    disproves: bool = False

    def correct(self, raw: Estimate, *, within_band: bool = False) -> Estimate:
        """The corrected estimate. An exact one is unchanged; `within_band` keeps the result within the original
        band."""
        if raw.is_exact:
            return raw
        trust = self.seen / (self.seen + 1)
        whole = raw.tokens * self.factor + self.added
        likely = raw.tokens * exp(log(self.factor) * trust) + self.added * trust
        unbelieved = abs(whole - likely)
        doubt = likely * self.spread
        low = likely - max((raw.tokens - raw.low) * self.width, doubt) - unbelieved - _ROUNDING
        high = likely + max((raw.high - raw.tokens) * self.width, doubt) + unbelieved + _ROUNDING
        if within_band:
            low, likely, high = (min(max(value, raw.low), raw.high) for value in (low, likely, high))
        return between(low, likely, high, raw.how and f"{raw.how}, learned")

    def scale(self, raw: Estimate, *, least_width: float = 1.0) -> Estimate:
        """The corrected estimate of a part of a request: only the factor is applied, since the constant is added once
        per request. The band does not become narrower, because the correction was learned from other content."""
        return raw if raw.is_exact else Ratio(self.factor, 0.0, max(least_width, self.width), self.seen).correct(raw)


def learn_ratio(seen: Sequence[CountObservation]) -> Ratio | None:
    """The common correction of the observations; None if there is nothing to learn from them."""
    observations = believable(seen)
    if not observations:
        return None
    factor, added = _line([(seen.tokens, seen.reported) for seen in observations])
    misses: list[float] = []  # how far off, in halves of the estimate's band
    for each in observations:
        residual = each.reported - each.tokens * factor - added
        half = each.high - each.tokens if residual > 0 else each.tokens - each.low
        misses.append(max(0.0, abs(residual) - _ROUNDING) / max(1, half))
    width = min(_WIDEST, max(_NARROWEST, _SPREADS * median(misses)))
    spread = _expected_miss([abs(each.reported / max(1.0, each.tokens * factor + added) - 1) for each in observations])
    off = sum(abs(each.reported - each.tokens) > _FRAMES + each.tokens * _OFF for each in observations)
    disproves = off >= _FEW and off >= len(observations) / 4
    return Ratio(factor, added, max(width, 1 - len(observations) / 8), len(observations), spread, disproves)


def _expected_miss(shares: Sequence[float]) -> float:
    """How far off the next count may be, as a share, given how far off the previous ones were: the largest, and
    somewhat more while there are few. One that is far from all others is set aside."""
    *others, largest = sorted(shares)
    if len(others) >= _MIN_AGREEING and largest > _ALONE * max(others[-1], _A_LITTLE):
        largest = others[-1]
    return min(_MOST_SPREAD, largest * (1 + _FEW / len(shares)))


def believable(seen: Sequence[CountObservation]) -> list[CountObservation]:
    """The observations to learn from: without the odd ones, unless those are several and the majority."""
    usual = [each for each in seen if not each.is_odd]
    odd = len(seen) - len(usual)
    return list(seen) if odd >= _MIN_AGREEING and odd > len(usual) else usual


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    sizes = [tokens for tokens, _ in points]
    if len(points) >= _ENOUGH_TO_TELL_APART and max(sizes) > min(sizes) * _SIZES_APART:
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if a[0] != b[0]]
        factor = min(max(median(slopes), _PLAUSIBLE[0]), _PLAUSIBLE[1])
        return factor, median(reported - factor * tokens for tokens, reported in points)
    factor = exp(median(log(reported / tokens) for tokens, reported in points))
    if _PLAUSIBLE[0] <= factor <= _PLAUSIBLE[1]:
        return factor, 0.0
    return 1.0, median(reported - tokens for tokens, reported in points)


def is_credible(raw: Estimate, reported: int, window: int | None = None) -> bool:
    """Whether a provider's count is plausible for a request that the rules alone estimate at `raw`."""
    if reported <= 0 or (window is not None and reported > window):
        return False
    return not CountObservation(raw.tokens, raw.low, raw.high, reported).is_odd


class Calibration:
    """The latest observations for each model, with the models in order of their last use."""

    def __init__(self) -> None:
        self._models: BoundedCache[str, deque[CountObservation]] = BoundedCache(_MODELS)
        self._ratios: BoundedCache[str, Ratio | None] = BoundedCache(_MODELS)

    @staticmethod
    def key(provider: str, model: str, *, tools: bool, media: bool = False) -> str:
        """The key for whole requests. Requests with tools are learned separately, because a provider adds text about
        tools to the prompt. So are those with images, files or sound, whose counts say little about text."""
        return f"{provider}/{model}{_TOOLS if tools else ''}{_MEDIA if media else ''}"

    @staticmethod
    def growth_key(provider: str, model: str, kind: TextKind) -> str:
        """The key for what a conversation grows by, which is also learned separately, by what the new text is made of:
        vocabularies agree about words and differ about numbers and scripts, and the constant part of a request is not
        in it."""
        return f"{provider}/{model}{_GROWTH[kind]}"

    def observe(
        self, key: str, raw: Estimate, reported: int, *, cached: bool = False, window: int | None = None
    ) -> None:
        """Add a count of the provider. `cached` means that it reported cached tokens: some providers then leave them
        out of the total, and such a count is ignored. So is an absurd one, and one above the model's `window`."""
        if window is not None and reported > window:
            return
        if not 0 <= raw.low <= raw.tokens <= raw.high <= _LARGEST or not is_possible(reported, raw.high):
            return
        if not raw.tokens or not reported or (cached and reported < raw.low / 2):
            return
        seen = self._models.get(key) or deque(maxlen=_OBSERVATIONS)
        seen.append(CountObservation(raw.tokens, raw.low, raw.high, reported))
        self._models.put(key, seen)
        self._ratios.pop(key)

    def ratio(self, key: str) -> Ratio | None:
        """The correction learned for a model; None if nothing was seen yet."""
        seen = self._models.peek(key)
        if seen is None:
            return None
        if key not in self._ratios:
            self._ratios.put(key, learn_ratio(seen))
        return self._ratios.peek(key)

    def lessons(self) -> list[Lesson]:
        """What was learned about each model, by name."""
        return [self._lesson(key, seen) for key, seen in sorted(self._models.items(), key=lambda each: each[0])]

    def _lesson(self, key: str, seen: Sequence[CountObservation]) -> Lesson:
        found = self.ratio(key) or Ratio(1.0, 0.0, 1.0, 0)
        model, kind = _parts_of(key)
        return Lesson(
            model=model,
            kind=kind,
            factor=round(found.factor, 4),
            added=round(found.added),
            seen=found.seen,
            set_aside=len(seen) - len(believable(seen)),
        )

    def forget(self, model: str = "") -> list[str]:
        """Forget what was learned about a model, given as `provider/model` or only by its name, or about all models.
        Returns the keys that were forgotten."""
        gone: list[str] = []
        for key in self._models:
            name, _ = _parts_of(key)
            if not model or model in (key, name, name.partition("/")[2]):
                self._models.pop(key)
                self._ratios.pop(key)
                gone.append(key)
        return gone

    @property
    def has_seen(self) -> bool:
        """Whether there are any observations."""
        return len(self._models) > 0

    def merge(self, other: "Calibration") -> None:
        """Add all observations of another calibration, as if they were made later."""
        for key, observations in other._models.items():
            self._take(key, observations)

    def _take(self, key: str, observations: Iterable[CountObservation]) -> None:
        for seen in observations:
            self.observe(key, Estimate(seen.tokens, seen.low, seen.high), seen.reported)

    def to_json(self) -> bytes:
        """All observations as JSON."""
        return msgspec.json.encode(Stored(1, {key: list(seen) for key, seen in self._models.items()}))

    @classmethod
    def from_json(cls, data: bytes) -> "Calibration":
        """Read what `to_json` wrote. Raises a `Fault` for anything else; the remedy is to start over."""
        try:
            stored = msgspec.json.decode(data, type=Stored)
        except msgspec.DecodeError as error:
            raise _unreadable(str(error)) from error
        if stored.version != 1:
            raise _unreadable(f"version {stored.version} is not known")
        calibration = cls()
        for key, observations in stored.models.items():
            calibration._take(key, observations)
        return calibration


def _parts_of(key: str) -> tuple[str, str]:
    """The model of a key, and the kind of its requests in words."""
    for kind, ending in _GROWTH.items():
        if key.endswith(ending):
            return key.removesuffix(ending), f"new {kind}"
    model, kinds = key, list[str]()
    for ending in (_MEDIA, _TOOLS):
        if model.endswith(ending):
            model, kinds = model.removesuffix(ending), [ending[1:], *kinds]
    return model, " and ".join(kinds) or "text"


def _unreadable(why: str) -> Fault:
    return Fault(
        Code.CONFIG,
        f"the calibration of token estimates cannot be read: {why}",
        hint="Delete the file; Sightline learns again from the next requests.",
    )


_MOST = 512


class CountedPrefixes:
    """Tokens that providers counted, by the last digest of the request, the latest at the end."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts: BoundedCache[str, int] = BoundedCache(_MOST)
        for digest, tokens in (counts or {}).items():
            self._counts.put(digest, tokens)

    @property
    def counts(self) -> dict[str, int]:
        """All counts, to be stored."""
        return dict(self._counts.items())

    @property
    def has_any(self) -> bool:
        """Whether there are any counts."""
        return len(self._counts) > 0

    def note(self, chain: list[str], tokens: int) -> None:
        """Note the tokens that the provider counted for the request with this chain."""
        self._counts.put(chain[-1], tokens)

    def merge(self, other: "CountedPrefixes") -> None:
        """Add all counts of another instance, as if they were made later."""
        for digest, tokens in other._counts.items():
            self._counts.put(digest, tokens)

    def longest(self, chain: list[str]) -> tuple[int, int] | None:
        """How many of the first messages were counted, and the tokens of a request with only these; None if no
        beginning of the request was counted."""
        for count in range(len(chain) - 1, 0, -1):
            if (tokens := self._counts.peek(chain[count])) is not None:
                return count, tokens
        return None

    def clear(self) -> None:
        """Forget all counts."""
        self._counts.clear()


def digest_chain(provider: str, model: str, request: Request) -> list[str]:
    """The digest of everything except the messages, then one for each message, which covers everything up to it."""
    options, reasoning = request.options, request.options.reasoning
    tools = tuple(map(of_tool, request.tools))
    form = None if options.format is None else msgspec.structs.replace(options.format, at="")
    if reasoning is not None:
        reasoning = msgspec.structs.replace(reasoning, at="", places={})
    around = (provider, model, tools, form, reasoning, options.previous_response_id)
    state = blake2b(exact_bytes(around), digest_size=12)
    chain = [state.hexdigest()]
    for message in request.messages:
        # Normalized as if composed here, so that a request of ours and the request parsed from its bytes are the same.
        state.update(exact_bytes(of_message(message)))
        chain.append(state.hexdigest())
    return chain


def exact_bytes(value: object) -> bytes:
    """The JSON of a value, to compare it exactly: Python finds 1, 1.0 and true equal, and the model reads them."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which clients in JavaScript send
        return ascii(value).encode()
