"""Lenient access to JSON of unknown shape: what is not as expected counts as missing."""

from datetime import datetime

from sightline.model.json import Json, JsonObject

_LATEST = 32_503_680_000.0
_MILLISECONDS = 100_000_000_000.0


def text(holder: JsonObject, key: str) -> str:
    """The text under a key."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def member(holder: JsonObject, key: str) -> JsonObject:
    """The object under a key."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def members(value: Json) -> list[JsonObject]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def moment(value: Json) -> float:
    """Seconds since 1970, from seconds, milliseconds or an ISO time; 0 if it is none."""
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value)
            return max(0.0, read.timestamp()) if read.tzinfo is not None else 0.0
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _MILLISECONDS * 1000:
        return 0.0
    seconds = value / 1000 if value > _MILLISECONDS else float(value)
    return seconds if 0 <= seconds <= _LATEST else 0.0
