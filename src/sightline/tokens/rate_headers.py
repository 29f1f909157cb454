"""Parse the rate limits in a provider's response headers.

Every vendor has its own spelling, so names are read word by word: what is counted, over which time, and whether the
value is the limit, what is left of it, or when it resets. Headers that are not understood are ignored.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sightline.wire.retry_after import http_date, plausible, timestamp

MINUTE = 60.0
DAY = 86_400.0

Counted: TypeAlias = Literal["requests", "tokens", "input_tokens", "output_tokens", "share"]

_FIRST_EPOCH_SECONDS = 1e8
_FIRST_EPOCH_MILLISECONDS = 1e11

_NAME = re.compile(r"(?P<maker>x-|anthropic-)?rate-?limit(?P<size>bysize)?-(?P<words>[a-z0-9-]+)")
_UNIFIED = re.compile(r"anthropic-ratelimit-unified-(?P<plan>\d{1,2}[hd])-(?P<role>utilization|reset)")
_CODEX = re.compile(
    r"x-codex-(?P<plan>primary|secondary)-(?P<role>used-percent|window-minutes|reset-after-seconds|reset-at)"
)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,20})?")
_LEADING_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,20})?(?=\s*(?:;|,\s|$))")
_UNIT = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|us|Â?µs|ns|d|h|m|s)")
_DURATION = re.compile(rf"(?:{_UNIT.pattern})+")
_PARAMETER = re.compile(r"\b(limit|remaining|reset|q|w|r|t)\s*=\s*\"?(\d{1,15})")

_SECONDS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "Âµs": 1e-6, "ms": 1e-3, "s": 1.0, "m": MINUTE, "h": 3600.0, "d": DAY,
}  # fmt: skip
_WINDOWS: Mapping[str, float] = {
    "second": 1.0, "minute": MINUTE, "hour": 3600.0, "day": DAY, "week": 7 * DAY, "month": 30 * DAY,
}  # fmt: skip
_COUNTED: Mapping[str, Counted] = {
    "requests": "requests",
    "req": "requests",
    "tokens": "tokens",
    "input-tokens": "input_tokens",
    "output-tokens": "output_tokens",
}
_ROLES = frozenset({"limit", "remaining", "reset"})


_Number: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e17)]


class Allowance(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One limit as a provider reported it: what is left of it and in how many seconds it resets.

    `window` is the time that the limit applies to, in seconds, None if unknown. `refills` means that it refills
    gradually and not all at once. A `share` is counted in percent of a plan.
    """

    counted: Counted
    window: _Number | None = None
    limit: _Number | None = None
    remaining: _Number | None = None
    reset: _Number | None = None
    refills: bool = False


def allowances(headers: Mapping[str, str], at: float) -> tuple[Allowance, ...]:
    """The limits in these headers. Names are in lower case; `at` is now, in seconds since 1970.

    Absolute times are compared with the response's own `date`, because the two clocks may differ.
    """
    if not _has_limits(tuple(headers)):
        return ()
    now = http_date(headers.get("date", "")) or at
    found = [*_by_names(headers, now), *_plans(headers, now), *_standard(headers)]
    apart = any(one.counted == "input_tokens" for one in found)
    # If input and output are limited separately, their sum adds nothing, and is less accurate about cached input.
    return tuple(
        one
        for one in found
        if not (one.limit is None and one.remaining is None and one.reset is None)
        and not (apart and one.counted == "tokens")
    )


@lru_cache(maxsize=256)
def _has_limits(names: tuple[str, ...]) -> bool:
    """Whether headers with these names can contain a limit. Cached, because a provider's responses have the same names
    again and again."""
    return any("limit" in name or _CODEX.fullmatch(name) for name in names)


@lru_cache(maxsize=256)
def may_tell(names: tuple[bytes, ...]) -> bool:
    """The same for names as received."""
    return _has_limits(tuple(name.decode("latin-1").lower() for name in names))


def reset_wait(seen: tuple[Allowance, ...], tokens: int) -> float | None:
    """How long a request of this size that was rejected for its rate should wait: until the exhausted limits reset.
    None if unknown.

    If no number shows what is exhausted, it is the limits that only report their reset.
    """
    resets = [(one.reset, one.remaining, amount_needed(one.counted, tokens)) for one in seen if one.reset is not None]
    lacking = [reset for reset, left, need in resets if left is not None and (left <= 0 or left < need)]
    silent = [reset for reset, left, _ in resets if left is None]
    return max(lacking or silent, default=None)


def amount_needed(counted: Counted, tokens: int) -> int:
    """How much of a limit a request of this size uses, as far as that is known before it is answered."""
    return {"requests": 1, "tokens": tokens, "input_tokens": tokens}.get(counted, 0)


def seconds_until(value: str, now: float) -> float | None:
    """A reset as seconds from now: `6m0s`, `28ms`, seconds, seconds or milliseconds since 1970, or a date. None if it
    cannot be parsed."""
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number >= _FIRST_EPOCH_MILLISECONDS:
            number = number / 1000 - now
        elif number >= _FIRST_EPOCH_SECONDS:
            number -= now
        return plausible(number)
    if _DURATION.fullmatch(value):
        return plausible(sum(float(number) * _SECONDS[unit] for number, unit in _UNIT.findall(value)))
    try:
        moment: float | None = timestamp(datetime.fromisoformat(value))
    except ValueError:
        moment = http_date(value)
    return None if moment is None else plausible(moment - now)


def _by_names(headers: Mapping[str, str], now: float) -> Iterable[Allowance]:
    """The limits of headers with one value each."""
    limits: dict[Allowance, Allowance] = {}
    for name, value in headers.items():
        if named := _parse_name(name):
            limit, role = named
            number = seconds_until(value.strip(), now) if role == "reset" else _count(value.strip())
            if role == "limit":
                number = number or None  # some providers write a limit of 0 if they do not know it
            limits[limit] = replace(limits.get(limit, limit), **{role: number})
    return limits.values()


def _parse_name(name: str) -> tuple[Allowance, str] | None:
    """The limit that a header is about, without its numbers, and the role of its value. None if not understood."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    words = match["words"].split("-")
    role = next((word for word in words if word in _ROLES), "")
    window = _WINDOWS.get(words[-1])
    rest = "-".join(word for word in words if word != role and word not in _WINDOWS)
    counted = _COUNTED.get(rest) if rest else "tokens" if match["size"] else "requests"
    if not role or counted is None:
        return None
    if match["maker"] == "anthropic-":
        return Allowance(counted, MINUTE, refills=True), role
    if window is not None or not rest:
        return Allowance(counted, window), role
    # Providers that name no window have tokens per minute in a bucket that refills steadily; requests may be per day.
    return Allowance(counted, None if counted == "requests" else MINUTE, refills=True), role


def _plans(headers: Mapping[str, str], now: float) -> Iterable[Allowance]:
    """Shares of a plan: how much of several hours or days is used up, in percent."""
    plans: dict[str, Allowance] = {}
    for name, value in headers.items():
        if match := _UNIFIED.fullmatch(name):
            number, unit = match["plan"][:-1], match["plan"][-1]
            known = plans.get(match["plan"], Allowance("share", int(number) * _SECONDS[unit]))
        elif match := _CODEX.fullmatch(name):
            known = plans.get(match["plan"], Allowance("share"))
        else:
            continue
        plans[match["plan"]] = _with_share(known, match["role"], value.strip(), now)
    return plans.values()


def _with_share(known: Allowance, role: str, value: str, now: float) -> Allowance:
    if role.startswith("reset"):
        return replace(known, reset=seconds_until(value, now))
    if not _NUMBER.fullmatch(value):
        return known
    number = float(value)
    if role == "window-minutes":
        return replace(known, window=number * MINUTE)
    return replace(known, limit=100.0, remaining=max(0.0, 100.0 - number * (100.0 if role == "utilization" else 1.0)))


def _standard(headers: Mapping[str, str]) -> Iterator[Allowance]:
    """The fields of the IETF draft, one item for each policy, or all in one as in an older draft."""
    policies = dict(_items(headers.get("ratelimit-policy", "")))
    for key, values in _items(headers.get("ratelimit", "")):
        policy = policies.get(key, {})
        reset = values.get("t", values.get("reset"))
        yield Allowance(
            "requests",
            window=policy.get("w"),
            limit=values.get("limit", policy.get("q")) or None,
            remaining=values.get("r", values.get("remaining")),
            reset=None if reset is None else plausible(reset),
        )


def _items(value: str) -> Iterator[tuple[str, dict[str, float]]]:
    items = value.split(",") if value.lstrip().startswith('"') else [value] * bool(value)
    for item in items:
        named = item.split(";")[0].strip() if item.lstrip().startswith('"') else ""
        yield named, {key: float(number) for key, number in _PARAMETER.findall(item)}


def _count(value: str) -> float | None:
    match = _LEADING_NUMBER.match(value)
    return float(match[0]) if match else None
