"""Versions of an API that a header names: what each of them refuses, whatever the model."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from sightline.catalog.facts import Facts, Sampler


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """`header` names the version, a date; `refuses` are the options that are refused from a version on."""

    header: str
    refuses: tuple[tuple[str, tuple[Sampler, ...]], ...]

    def narrow(self, facts: Facts, headers: Iterable[tuple[str, str]]) -> Facts:
        """The facts of a model that is asked with these headers; of two that name a version the last one counts."""
        version = ""
        for name, value in headers:
            if name.lower() == self.header:
                version = value.strip()
        more = tuple(name for since, names in self.refuses if since <= version for name in names)
        if not more:
            return facts
        return msgspec.structs.replace(facts, refuses=tuple(dict.fromkeys((*(facts.refuses or ()), *more))))
