"""What providers' own counts teach about our estimates, for each model: a factor, and a number that is always added.

Medians do the work, so that a strange count (a cache's accounting, a search whose results were billed) moves nothing.
A count that no vocabulary and no hidden prompt explains is ignored until several others agree: one such count, taken
for an addition to every request, would leave no room in the model's window for good. The factor is separated from the
addition once requests of different sizes were seen. A single observation counts half, and the band keeps the rest.

A counted prompt is found again by a chain of digests, one for each message, so that of a longer request of the same
conversation only the new messages are estimated. The chain begins with all that is not a message: provider, model,
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
"""So many tokens a provider may say to the model unseen: templates, guards, instructions for tools."""
_WITNESSES = 3
_ALONE, _A_LITTLE = 4.0, 0.01
_FEW = 2
_MOST_SPREAD = 0.5
_FRAMES, _OFF = 24, 0.015
"""So many tokens, and such a share, a count by the model's own vocabulary may be off: by how messages are framed."""
_TOOLS, _MEDIA = "+tools", "+media"
_GROWTH: Mapping[TextKind, str] = {kind: f"+growth:{kind}" for kind in get_args(TextKind)}


class CountObservation(msgspec.Struct, frozen=True, array_like=True):
    """An estimate before any correction, and what the provider then counted."""

    tokens: int
    low: int
    high: int
    reported: int

    @property
    def is_odd(self) -> bool:
        """Whether the count is so far from the estimate that one alone is more likely a mistake than a lesson."""
        return not self.low * _FAR_BELOW <= self.reported <= self.high * _FAR_ABOVE + _HIDDEN_PROMPT


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned of one model, to be looked at. `kind` is what its requests had: `text`, `tools`, `media` or
    both; or what its conversations grew by: `new words`, `new figures`, `new scripts`. `set_aside` are counts that
    teach nothing, because nothing explains them."""

    model: str
    kind: str
    factor: float
    added: int
    seen: int
    set_aside: int


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form in which all of it is kept."""

    version: int
    models: dict[str, list[CountObservation]]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How one model's counts relate to our estimates: times `factor`, plus `added`. `width` is what the band is
    multiplied by, `seen` how many counts it rests on. `spread` is the share by which counts were off all the same. With
    `disproves`, several counts were off by more than is possible if the vocabulary were the model's own."""

    factor: float
    added: float
    width: float
    seen: int
    spread: float = 0.0
    disproves: bool = False

    def correct(self, raw: Estimate, *, within_band: bool = False) -> Estimate:
        """The estimate after the lesson. An exact one stays; `within_band` keeps to the doubt that it had."""
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
        """A piece of a request after the lesson: the factor alone, since what is always added is added once. Its band
        is no narrower than before, as the lesson was of other content."""
        return raw if raw.is_exact else Ratio(self.factor, 0.0, max(least_width, self.width), self.seen).correct(raw)


def learn_ratio(seen: Sequence[CountObservation]) -> Ratio | None:
    """What the observations have in common; None where there is nothing to learn from them."""
    observations = believable(seen)
    if not observations:
        return None
    factor, added = _line([(seen.tokens, seen.reported) for seen in observations])
    misses: list[float] = []  # how far off, in halves of the band that the estimate had
    for each in observations:
        residual = each.reported - each.tokens * factor - added
        half = each.high - each.tokens if residual > 0 else each.tokens - each.low
        misses.append(max(0.0, abs(residual) - _ROUNDING) / max(1, half))
    width = min(_WIDEST, max(_NARROWEST, _SPREADS * median(misses)))
    spread = _spread([abs(each.reported / max(1.0, each.tokens * factor + added) - 1) for each in observations])
    off = sum(abs(each.reported - each.tokens) > _FRAMES + each.tokens * _OFF for each in observations)
    disproves = off >= _FEW and off >= len(observations) / 4
    return Ratio(factor, added, max(width, 1 - len(observations) / 8), len(observations), spread, disproves)


def _spread(shares: Sequence[float]) -> float:
    """How far off the next count may be, as a share, if those before were so far off: the most, and some more while
    there are few. One that is far from all others is set aside."""
    *others, largest = sorted(shares)
    if len(others) >= _WITNESSES and largest > _ALONE * max(others[-1], _A_LITTLE):
        largest = others[-1]
    return min(_MOST_SPREAD, largest * (1 + _FEW / len(shares)))


def believable(seen: Sequence[CountObservation]) -> list[CountObservation]:
    """The observations to learn from: without the odd ones, unless those are several and the most."""
    usual = [each for each in seen if not each.is_odd]
    odd = len(seen) - len(usual)
    return list(seen) if odd >= _WITNESSES and odd > len(usual) else usual


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
    """Whether a provider's count can be that of a request of which the rules alone say this much."""
    if reported <= 0 or (window is not None and reported > window):
        return False
    return not CountObservation(raw.tokens, raw.low, raw.high, reported).is_odd


class Calibration:
    """The latest observations for each model, the models in order of their last use."""

    def __init__(self) -> None:
        self._models: BoundedCache[str, deque[CountObservation]] = BoundedCache(_MODELS)
        self._ratios: BoundedCache[str, Ratio | None] = BoundedCache(_MODELS)

    @staticmethod
    def key(provider: str, model: str, *, tools: bool, media: bool = False) -> str:
        """Requests with tools are learned apart: what a provider says to the model about tools comes with them. So are
        those with pictures, files or sound, whose count says little about words."""
        return f"{provider}/{model}{_TOOLS if tools else ''}{_MEDIA if media else ''}"

    @staticmethod
    def growth_key(provider: str, model: str, kind: TextKind) -> str:
        """What a conversation grows by is learned apart, too, by what it is made of: vocabularies agree about words and
        differ about numbers and scripts, and what comes with every request is in none of it."""
        return f"{provider}/{model}{_GROWTH[kind]}"

    def observe(
        self, key: str, raw: Estimate, reported: int, *, cached: bool = False, window: int | None = None
    ) -> None:
        """Take a count of the provider. `cached` says that it reported cached tokens; some then leave them out of the
        whole, and such a count teaches nothing; nor does an absurd one, or that is more than the model's
        `window`."""
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
        """What was learned about a model; None where nothing was seen yet."""
        seen = self._models.peek(key)
        if seen is None:
            return None
        if key not in self._ratios:
            self._ratios.put(key, learn_ratio(seen))
        return self._ratios.peek(key)

    def lessons(self) -> list[Lesson]:
        """What was learned of each model, by name."""
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
        """Unlearn what is known of a model, named as `provider/model` or by its name alone, or of all. What was
        forgotten."""
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
        """Whether there is anything to learn from."""
        return len(self._models) > 0

    def merge(self, other: "Calibration") -> None:
        """Take in all that another one has seen, as if it had come after."""
        for key, observations in other._models.items():
            self._take(key, observations)

    def _take(self, key: str, observations: Iterable[CountObservation]) -> None:
        for seen in observations:
            self.observe(key, Estimate(seen.tokens, seen.low, seen.high), seen.reported)

    def to_json(self) -> bytes:
        """All observations."""
        return msgspec.json.encode(Stored(1, {key: list(seen) for key, seen in self._models.items()}))

    @classmethod
    def from_json(cls, data: bytes) -> "Calibration":
        """What `to_json` wrote. Anything else is a fault, and starting anew is what to do about it."""
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
    """What providers counted, by the last digest of the request, the latest at the end."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts: BoundedCache[str, int] = BoundedCache(_MOST)
        for digest, tokens in (counts or {}).items():
            self._counts.put(digest, tokens)

    @property
    def counts(self) -> dict[str, int]:
        """All of them, to be kept."""
        return dict(self._counts.items())

    @property
    def has_any(self) -> bool:
        """Whether there is one."""
        return len(self._counts) > 0

    def note(self, chain: list[str], tokens: int) -> None:
        """The provider counted so many tokens for the request with this chain."""
        self._counts.put(chain[-1], tokens)

    def merge(self, other: "CountedPrefixes") -> None:
        """Take in all that another one has, as if it had come after."""
        for digest, tokens in other._counts.items():
            self._counts.put(digest, tokens)

    def longest(self, chain: list[str]) -> tuple[int, int] | None:
        """How many of the first messages were counted, and the tokens of a request with just these; None where no
        beginning of it was."""
        for count in range(len(chain) - 1, 0, -1):
            if (tokens := self._counts.peek(chain[count])) is not None:
                return count, tokens
        return None

    def clear(self) -> None:
        """Forget them."""
        self._counts.clear()


def digest_chain(provider: str, model: str, request: Request) -> list[str]:
    """The digest of everything but the messages, then one more for each message, which covers all up to it."""
    options, reasoning = request.options, request.options.reasoning
    tools = tuple(map(of_tool, request.tools))
    form = None if options.format is None else msgspec.structs.replace(options.format, at="")
    if reasoning is not None:
        reasoning = msgspec.structs.replace(reasoning, at="", places={})
    around = (provider, model, tools, form, reasoning, options.previous_response_id)
    state = blake2b(_encode(around), digest_size=12)
    chain = [state.hexdigest()]
    for message in request.messages:
        # As if it had been composed here, so that a request of ours and what is read of its bytes are the same.
        state.update(_encode(of_message(message)))
        chain.append(state.hexdigest())
    return chain


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a character, which clients in JavaScript send
        return ascii(value).encode()
