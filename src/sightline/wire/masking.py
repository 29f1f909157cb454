"""Secrets taken out of what others say: a provider that repeats a credential must not spread it."""

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from sightline.model.json import Json

MASK = "***"
SHORTEST = 4
"""Shorter values are no secrets, and taking them out would only spoil the text."""


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets, also where one stands percent-encoded or as JSON writes it."""
    pattern = _pattern(secrets)
    return text if pattern is None else pattern.sub(MASK, text)


def masked_json(value: Json, secrets: Iterable[str]) -> Json:
    """The value with every string in it masked, keys as well."""
    pattern = _pattern(secrets)
    return value if pattern is None else _walked(value, pattern)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    told = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
    # The longest first, so that no end of a secret stays behind where another one is its beginning.
    return re.compile("|".join(map(re.escape, sorted(told, key=len, reverse=True)))) if told else None


def _forms(secret: str) -> Iterator[str]:
    """The ways in which others may write it."""
    yield secret
    if secret.isprintable():
        yield quote(secret, safe="")
    for is_ascii in (True, False):
        inside = json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
        yield inside
        yield inside.replace("/", r"\/")


def _walked(value: Json, pattern: re.Pattern[str]) -> Json:
    match value:
        case str():
            return pattern.sub(MASK, value)
        case list():
            return [_walked(item, pattern) for item in value]
        case dict():
            return {pattern.sub(MASK, key): _walked(item, pattern) for key, item in value.items()}
        case _:
            return value
