"""What a client finds in the headers of an answer that is not its provider's own: a request id, and the rate limits of
the account, under the names that its dialect has for them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from sightline.dialects.dialect import LimitHeaders
from sightline.dialects.registry import dialect
from sightline.exchange.client_request import TextHeaders
from sightline.tokens.rate_headers import Allowance, Counted, allowances

Headers = list[tuple[bytes, bytes]]

_WORDS: dict[Counted, str] = {
    "requests": "requests", "tokens": "tokens", "input_tokens": "input-tokens", "output_tokens": "output-tokens",
}  # fmt: skip


def request_id(
    client: str, provider: str, came: TextHeaders, passed: Iterable[tuple[bytes, bytes]], own: str
) -> Headers:
    """The header that names the request, for a client of one dialect and a provider of another or the same: the
    provider's id, else our `own`. None where the dialect has no such header, or it is among those that are `passed`."""
    name = dialect(client).clients.request_id
    if not name or name.encode() in (known := dict(passed)) or name.encode() in map(bytes.lower, known):
        return []
    wanted = dialect(provider).clients.request_id if provider else ""
    given = next((value for each, value in came if wanted and each.lower() == wanted and value), own)
    return [(name.encode(), given.encode("latin-1"))] if given else []


def limits_for_client(client: str, came: TextHeaders, now: float) -> Headers:
    """The rate limits that a provider of another dialect tells of, as a client of this one reads them. Where it reads
    none, they pass as they came."""
    listed = {name.lower(): value for name, value in came if "ratelimit" in name.lower()}
    if not listed:
        return []
    names = dialect(client).clients.limits
    if names is None:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in listed.items()]
    found: dict[str, str] = {}
    dated = {name.lower(): value for name, value in came if name.lower() == "date"}
    for allowance in allowances({**dated, **listed}, now):
        for name, value in _limit_lines(allowance, names, now):
            found.setdefault(name, value)
    return [(name.encode(), value.encode()) for name, value in found.items()]


def _limit_lines(allowance: Allowance, names: LimitHeaders, now: float) -> Iterator[tuple[str, str]]:
    counted = _WORDS.get(allowance.counted, "")
    if counted not in names.counted:
        counted = "tokens" if counted == "input-tokens" else ""  # the prompt is most of what a limit of tokens counts
    if not counted:
        return
    for role, count in (("limit", allowance.limit), ("remaining", allowance.remaining)):
        if count is not None:
            yield names.template.format(counted=counted, role=role), str(int(count))
    if allowance.reset is not None:
        yield names.template.format(counted=counted, role="reset"), _reset(allowance.reset, now, names)


def _reset(seconds: float, now: float, names: LimitHeaders) -> str:
    if names.reset == "duration":
        return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
    return datetime.fromtimestamp(now + seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
