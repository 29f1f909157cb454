"""The catalogue: every provider, family, model and route that is known, under its name."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from functools import cached_property

import msgspec

from sightline.catalog.facts import Family, Model
from sightline.catalog.provider import Provider
from sightline.catalog.route import Route


class Detection(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`provider` holds for each provider that is called by one of `names` or whose base URL contains one of
    `url_contains` and none of `not_url_contains`. Case does not matter, and what the user has set stays."""

    names: tuple[str, ...] = ()
    url_contains: tuple[str, ...] = ()
    not_url_contains: tuple[str, ...] = ()
    provider: Provider = Provider()

    def fits(self, name: str, provider: Provider) -> bool:
        """Whether this provider is of that kind."""
        called = {name.lower(), provider.title.lower()}
        if any(each.lower() in called for each in self.names):
            return True
        url = provider.base_url.lower()
        return _holds_any(url, self.url_contains) and not _holds_any(url, self.not_url_contains)


def _holds_any(url: str, marks: tuple[str, ...]) -> bool:
    return any(mark.lower() in url for mark in marks)


class Catalog(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """What the built-in tables and the user's configuration say together. Order is the order of the files."""

    providers: dict[str, Provider] = {}
    families: dict[str, Family] = {}
    models: dict[str, Model] = {}
    routes: tuple[Route, ...] = ()
    detections: dict[str, Detection] = {}

    # Each request asks for these, so they are made once for a catalogue.

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """The models by name and alias in small letters. A name goes before an alias, and the first before others."""
        names = {name.lower(): name for name in reversed(self.models)}
        return {alias.lower(): name for name, model in self.models.items() for alias in model.aliases} | names

    @cached_property
    def globs(self) -> Sequence[tuple[re.Pattern[str], Family]]:
        """The families by what their models are called, in small letters, the longest glob first."""
        globs = [(glob.lower(), family) for family in self.families.values() for glob in family.match]
        globs.sort(key=lambda each: len(each[0]), reverse=True)
        return [(re.compile(translate(glob)), family) for glob, family in globs]
