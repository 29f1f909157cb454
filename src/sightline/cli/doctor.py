"""`sightline doctor`: checks everything that an answer needs."""

import argparse
import asyncio
import platform
from collections.abc import Iterator
from datetime import UTC, datetime

from sightline.app.configuration import Configuration, data_folder, load_with_problems
from sightline.app.engine import counter, diagnose_embedded
from sightline.app.machine import SystemClock
from sightline.app.workers import count_workers, why_alone
from sightline.catalog.catalog import Catalog, PriceDate, price_dates
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import many, write
from sightline.errors import Fault
from sightline.exchange.memory import writable
from sightline.platform.support import missing
from sightline.tokens.text_count import count_tokens
from sightline.transport.embedded.diagnosis import DiagnosisFinding
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Origin, Proxies


def run(arguments: argparse.Namespace) -> int:
    """Print the findings. The exit code tells whether anything is broken."""
    is_sound = True
    for title, findings in _diagnose(load_with_problems(arguments.config), arguments.data):
        write(f"{title}\n".encode())
        for finding in findings:
            mark = {True: "ok", False: "NO", None: "--"}[finding.ok]
            hint = f"\n       {'':16} {finding.hint}" if finding.hint else ""
            line = f"  {mark:3}  {finding.name:16} {finding.detail}{hint}\n"
            write(line.encode("utf-8", "surrogateescape"))
            is_sound = is_sound and finding.ok is not False
    return 0 if is_sound else EXIT_FAILED


_OLD_PRICES = 6
"""Months after which a provider's prices should be checked again."""


_MOST_NAMES = 6


def _price_findings(catalog: Catalog) -> list[DiagnosisFinding]:
    """How old the built-in prices are. Costs do not reflect what a provider has changed since then."""
    today, dates = datetime.fromtimestamp(SystemClock().now(), UTC), price_dates(catalog)
    old: dict[str, list[PriceDate]] = {}
    for each in dates:
        if (today.year - int(each.month[:4])) * 12 + today.month - int(each.month[5:]) > _OLD_PRICES:
            old.setdefault(each.provider, []).append(each)
    found = []
    for name, prices in sorted(old.items()):
        models = [each.model or "tiers and tools" for each in prices]
        names = ", ".join(models[:_MOST_NAMES]) + (" …" if len(models) > _MOST_NAMES else "")
        places = ", ".join(dict.fromkeys(each.source for each in prices if each.source))
        hint = f"Compare them with {places or 'its own list'}, and set changed ones in [models] of sightline.toml."
        detail = f"{many(len(prices), 'price')} looked up in {min(each.month for each in prices)} or later: {names}"
        found.append(DiagnosisFinding(name, ok=None, detail=detail, hint=hint))
    current = [each for each in dates if each.provider not in old]
    if current:
        providers = {each.provider for each in current}
        detail = f"of {many(len(providers), 'provider')}: looked up from {min(each.month for each in current)} on"
        found.append(DiagnosisFinding("prices", ok=True, detail=detail))
    return found


def _diagnose(loaded: Configuration, data: str | None) -> Iterator[tuple[str, list[DiagnosisFinding]]]:
    """The findings about each part of the program, under its title."""
    file, folder = str(loaded.path) if loaded.path else "none; only the built-in catalogue", data_folder(data)
    found = [DiagnosisFinding("python", ok=True, detail=f"{platform.python_version()} on {platform.platform()}")]
    if lacking := missing():
        found.append(DiagnosisFinding("system", ok=None, detail=f"not supported here: {', '.join(lacking)}"))
    found.append(DiagnosisFinding("file", ok=None if loaded.path is None else not loaded.problems, detail=file))
    found += [DiagnosisFinding("problem", ok=False, detail=each.text, hint=each.hint) for each in loaded.problems]
    try:
        writable(folder)
        found.append(DiagnosisFinding("data", ok=True, detail=str(folder)))
    except OSError as error:
        hint = "Make it writable, or name another folder with --data or SIGHTLINE_DATA."
        found.append(DiagnosisFinding("data", ok=False, detail=f"{folder}: {error.strerror}", hint=hint))
    count = count_workers(loaded.settings.server.workers)
    why = why_alone(count, loaded.settings.network.max_connections)
    detail = "1 process serves clients" if why or count == 1 else f"{count} processes serve clients"
    found.append(DiagnosisFinding("workers", ok=None if why else True, detail=detail, hint=why and f"Only one: {why}."))
    yield "configuration", found

    # Each provider that needs a key, with its variable; the first that is set is the default.
    keyed = [(name, each) for name, each in loaded.catalog.providers.items() if each.key_env and not each.embedded]
    found = []
    for name, provider in keyed:
        is_set = loaded.has_key(provider)
        detail = f"{provider.key_env} is {'' if is_set else 'not '}set"
        found.append(DiagnosisFinding(name, ok=is_set or None, detail=detail))
    yield "keys", found

    found = []
    try:
        Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment).context()
        found.append(DiagnosisFinding("certificates", ok=True, detail="the system's, and your own"))
    except Fault as fault:
        found.append(DiagnosisFinding("certificates", ok=False, detail=fault.message, hint=fault.hint))
    try:
        proxy = Proxies.of(loaded.environment).for_origin(Origin("https", "provider.example", 443))
        detail = "none" if proxy is None else f"{proxy.scheme}://{proxy.place} (from {proxy.variable})"
        found.append(DiagnosisFinding("proxy", ok=None if proxy is None else True, detail=detail))
    except Fault as fault:
        found.append(DiagnosisFinding("proxy", ok=False, detail=fault.message, hint=fault.hint))
    yield "network", found

    try:
        count_tokens("o200k_base", "what you see")
        found = [DiagnosisFinding("o200k_base", ok=True, detail="tokens are counted")]
    except ImportError as error:
        hint = "Reinstall Sightline: make install."
        found = [DiagnosisFinding("o200k_base", ok=False, detail=str(error), hint=hint)]
    memory = counter(data).memory
    found += [DiagnosisFinding("learned", ok=False, detail=memory.trouble)] if memory.trouble else []
    for each in memory.lessons():
        aside = f"; {each.set_aside} odd counts set aside" if each.set_aside else ""
        rule = f"estimates x {each.factor:g} {'-' if each.added < 0 else '+'} {abs(each.added):,}"
        detail = f"{each.model} ({each.kind}): {rule}, from {each.seen} counts{aside}"
        hint = f"To forget it: sightline config forget-learned {each.model}" if each.set_aside else ""
        found.append(DiagnosisFinding("learned", ok=True, detail=detail, hint=hint))
    yield "tokens", found
    yield "prices", _price_findings(loaded.catalog)
    yield "embedded model", asyncio.run(diagnose_embedded(loaded))
