"""Service tiers: the words of each API for how fast and at which price a request is served.

Anthropic: auto, standard_only. OpenAI: auto, default, flex, priority, scale and fast, and ultrafast in Responses.
Gemini: standard, flex, priority and unspecified. Standard serving has three names; the others that two APIs share have
the same name in both.
"""

from collections.abc import Mapping

import msgspec

from sightline.model.options import Options
from sightline.model.report import Report

Tiers = Mapping[str, str | None]
"""A tier under any API's name -> its name in one API; None where it says what happens anyway."""

_OPENAI: Tiers = {
    **{word: word for word in ("auto", "default", "flex", "priority", "scale", "fast")},
    "standard": "default",
    "standard_only": "default",
    "unspecified": None,
}

OF_CHAT: Tiers = _OPENAI
OF_RESPONSES: Tiers = {**_OPENAI, "ultrafast": "ultrafast"}
OF_ANTHROPIC: Tiers = {
    "auto": "auto",
    "standard_only": "standard_only",
    "default": "standard_only",
    "standard": "standard_only",
    "unspecified": None,
}
# OpenAI serves `fast` as priority and says so in its replies.
OF_GEMINI: Tiers = {
    "auto": None,
    "unspecified": None,
    "standard": "standard",
    "standard_only": "standard",
    "default": "standard",
    "flex": "flex",
    "priority": "priority",
    "fast": "priority",
}


def fit_tier(options: Options, tiers: Tiers, report: Report, dialect: str) -> Options:
    """Another API's options with the tier under this one's name; without it, and reported, where there is none."""
    if options.service_tier is None:
        return options
    tier = options.service_tier.lower()  # Gemini takes its words in any case
    if tiers.get(tier) is None:
        place = options.places.get("service_tier", "/service_tier")
        if tier in tiers:
            report.lose(place, "service_tier", f"{dialect} does so without being told", "identity")
        else:
            report.lose(place, f"service tier {tier!r}", f"{dialect} has no such tier", "option")
    return msgspec.structs.replace(options, service_tier=tiers.get(tier))
