"""Values of options that each API spells its own way: service tiers, and ids of end users."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from sightline.model.options import Options
from sightline.model.report import Report

USER_ID = "user_id"
"""The rule for ids that must not name a person."""

OPENAI_LIMITS = {"user": 64, "safety_identifier": 128}
_ANTHROPIC_LIMIT = 256
_E_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_PHONE = re.compile(r"\+?[\d\s().-]{7,}")


def fit_openai_ids(options: Options, report: Report, dialect: str) -> Options:
    """The options with ids that OpenAI's APIs take."""
    for name, limit in OPENAI_LIMITS.items():
        value: str | None = getattr(options, name)
        if value is not None and len(value) > limit:
            why = f"{dialect} takes {limit} characters at most: a hash is sent"
            options = _hash(options, name, value, why, report)
    return options


def fit_anthropic_id(options: Options, report: Report, dialect: str) -> Options:
    """The options with the one id that Anthropic's API has as `user`, and as none that it refuses."""
    if options.safety_identifier is not None:
        place = options.places.get("safety_identifier", "/safety_identifier")
        if options.user is None:
            places = {**options.places, "user": place}
            options = msgspec.structs.replace(options, user=options.safety_identifier, places=places)
        elif options.user != options.safety_identifier:
            why = f"{dialect} has one id for a user, and user is sent"
            report.lose(place, "safety_identifier", why, "identity")
        options = msgspec.structs.replace(options, safety_identifier=None)
    value = options.user
    if value is None:
        return options
    if looks_like_a_person(value):
        why = f"{dialect} refuses e-mail addresses and phone numbers: a hash is sent"
        return _hash(options, "user", value, why, report)
    if len(value) > _ANTHROPIC_LIMIT:
        why = f"{dialect} takes {_ANTHROPIC_LIMIT} characters at most: a hash is sent"
        return _hash(options, "user", value, why, report)
    return options


def looks_like_a_person(user_id: str) -> bool:
    """Whether an id is an e-mail address or a phone number, as far as Anthropic looks."""
    return bool(_E_MAIL.search(user_id) or _PHONE.fullmatch(user_id))


def hash_id(user_id: str) -> str:
    """What is sent in place of an id: the same each time, and no name."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()


def _hash(options: Options, name: str, value: str, why: str, report: Report) -> Options:
    report.lose(options.places.get(name, f"/{name}"), "the id of the user as it was written", why, "identity")
    return msgspec.structs.replace(options, **{name: hash_id(value)})


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
            report.lose(place, "service_tier", f"{dialect} does so by default", "identity")
        else:
            report.lose(place, f"service tier {tier!r}", f"{dialect} has no such tier", "option")
    return msgspec.structs.replace(options, service_tier=tiers.get(tier))
