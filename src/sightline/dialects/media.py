"""Pictures, sound and files between the two ways in which they travel: data URLs and base64 beside a media type."""

import re

from sightline.model.parts import Inline, Link

_DATA_URL = re.compile(r"data:([^,]*);base64,", re.IGNORECASE)


def from_url(url: str) -> Inline | Link:
    """A data URL as inline bytes, any other URL as a link; a media type keeps its parameters."""
    match = _DATA_URL.match(url)
    if match is None:
        return Link(url)
    return Inline(match[1], url[match.end() :])


def to_url(source: Inline | Link) -> str:
    """The URL that says the same."""
    return source.url if isinstance(source, Link) else f"data:{source.media_type};base64,{source.data}"
