"""`sightline config`, `sightline doctor` and `sightline plugin`: show and check what is set, what is loaded, and
everything else that an answer needs.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import many, print_fault, say, write, write_lines
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.catalog.catalog import Catalog
    from sightline.transport.embedded.diagnosis import DiagnosisFinding


def add_config(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `config` with `path`, `check`, `show` and `forget-learned`."""
    command = commands.add_parser(
        "config",
        help="show and check the configuration",
        description="Show and check what is set: the built-in catalogue, sightline.toml and SIGHTLINE_ variables.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, what, run in (
        ("path", "print the path of the active file", _path),
        ("check", "report every problem with file and line", _check),
        ("show", "print the active configuration as JSON", _show),
    ):
        action = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        add_shared(action)
        action.set_defaults(run=run)
    forget = actions.add_parser(
        "forget-learned",
        help="reset the calibration of token estimates",
        description="Forget the learned corrections of the token estimates of a model, or of all models.",
    )
    forget.add_argument("model", nargs="?", default="", metavar="MODEL", help="provider/model, or a model's name")
    add_shared(forget)
    forget.set_defaults(run=_forget_learned)


def _path(arguments: argparse.Namespace) -> int:
    from sightline.app.configuration import config_file, config_home

    found = config_file(arguments.config)
    if found is None:
        say("note: there is no configuration file; this is its default path")
    write(os.fsencode(found or config_home()) + b"\n")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from sightline.app.configuration import load_with_problems
    from sightline.cli.program import EXIT_USAGE

    loaded = load_with_problems(arguments.config)
    place = loaded.path or "environment"
    unusable = [] if loaded.problems else [(f"{place}: {each.message}", each.hint) for each in _unusable(loaded)]
    faults = [(problem.text, problem.hint) for problem in loaded.problems] or unusable
    for message, hint in faults:
        print_fault(Fault(Code.CONFIG, message, hint=hint))
    if faults:
        return EXIT_USAGE
    where = loaded.path or "no file, only the built-in catalogue"
    counts = f"{len(loaded.catalog.providers)} providers, {len(loaded.catalog.models)} models"
    write(os.fsencode(f"ok: {where} ({counts}, {many(len(loaded.catalog.routes), 'route')})\n"))
    return 0


def _unusable(loaded: "Configuration") -> list[Fault]:
    """Well-formed settings that cannot work: an unknown model, missing certificates."""
    from sightline.catalog.choose import choose
    from sightline.transport.http.dialling import Trust

    faults = []
    try:
        Trust(ca_file=loaded.settings.network.ca_file, environment={}).context()
    except Fault as fault:
        faults.append(fault)
    try:
        if loaded.settings.ask.model:
            choose(loaded.catalog, loaded.settings.ask.model, has_key=loaded.has_key)
    except Fault as fault:
        faults.append(fault)
    return faults


def _show(arguments: argparse.Namespace) -> int:
    import msgspec

    from sightline.app.configuration import configuration

    loaded = configuration(arguments.config)
    document = {**msgspec.to_builtins(loaded.settings), **msgspec.to_builtins(loaded.catalog)}
    write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return 0


def _forget_learned(arguments: argparse.Namespace) -> int:
    from sightline.app.engine import counter
    from sightline.cli.program import EXIT_FAILED

    gone = counter(arguments.data).memory.forget(arguments.model)
    for name in gone:
        write(f"{name}\n".encode())
    if gone or not arguments.model:
        say(f"forgot what was learned about {many(len(gone), 'kind')} of requests")
        return 0
    say(f"note: nothing was learned about {arguments.model}; `sightline doctor` lists what was")
    return EXIT_FAILED


def add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `doctor`, which has only the shared options."""
    command = commands.add_parser(
        "doctor",
        help="check everything that an answer needs",
        description="Check the configuration, keys, proxies, certificates, tokenizer and the embedded model.",
    )
    add_shared(command)
    command.set_defaults(run=run_doctor)


def run_doctor(arguments: argparse.Namespace) -> int:
    """Report what was found; the exit code says whether anything is broken."""
    from sightline.app.configuration import load_with_problems
    from sightline.cli.program import EXIT_FAILED

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
"""Months after which the prices of a provider should be looked at again."""
_MOST_NAMES = 6


def _price_findings(catalog: "Catalog") -> list["DiagnosisFinding"]:
    """How old the built-in prices are. What a provider has changed since then is not in any cost."""
    from datetime import UTC, datetime

    from sightline.app.machine import SystemClock
    from sightline.catalog.catalog import PriceDate, price_dates
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

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


def _diagnose(loaded: "Configuration", data: str | None) -> Iterator[tuple[str, list["DiagnosisFinding"]]]:
    """What was found of each part of the program, under its title."""
    import asyncio
    import platform

    from sightline.app.configuration import data_folder
    from sightline.app.engine import counter, diagnose_embedded
    from sightline.app.workers import count_workers, why_alone
    from sightline.exchange.memory import writable
    from sightline.platform.support import missing
    from sightline.tokens.text_count import count_tokens
    from sightline.transport.embedded.diagnosis import DiagnosisFinding
    from sightline.transport.http.dialling import Trust
    from sightline.transport.http.target import Origin, Proxies

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


def add_plugin(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `plugin list` and `plugin test`."""
    command = commands.add_parser(
        "plugin",
        help="list the plug-ins that are loaded, or test one",
        description="Plug-ins add dialects, ways to sign requests, tools, models, formats, hooks, graders, redactors, "
        "filter fields and panels. Only what [plugins] of sightline.toml names is loaded. How to write one is in "
        "docs/guide/plugins.md; `sightline examples` copies one file for each kind.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list what is loaded, and from where",
        description="List each plug-in that [plugins] names, its location, what it adds, and which parts failed.",
    )
    add_shared(listing)
    listing.set_defaults(run=_list_plugins)
    testing = actions.add_parser(
        "test",
        help="check that a plug-in follows the rules of its kinds",
        description="Load a plug-in and check everything that it adds; each problem names the law or rule that is "
        "broken. Nothing is sent.",
    )
    testing.add_argument("file", metavar="FILE", help="the Python file of the plug-in, or the name of an entry point")
    testing.add_argument(
        "--text", action="append", default=[], metavar="TEXT", help="also try redactors on this text; may be repeated"
    )
    testing.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an entry of sign_options that signers get; may be repeated",
    )
    testing.set_defaults(run=_test_plugin)


def _list_plugins(arguments: argparse.Namespace) -> int:
    """Print the plug-ins."""
    from sightline.app.configuration import load_with_problems
    from sightline.cli.program import EXIT_FAILED

    plugins = load_with_problems(arguments.config).plugins
    if plugins is None:
        say("no plug-in is named in [plugins] of the configuration; nothing is loaded")
        return 0
    for each in plugins.loaded:
        lines = [f"{each.named}  {each.place}"]
        lines += (
            [] if each.plugin is None else [f"  {_part_line(each.failures, what)}" for what in each.plugin.contents()]
        )
        lines += [f"  NOT LOADED: {each.failures['']}"] if "" in each.failures else []
        write_lines(lines)
    return EXIT_FAILED if any(each.failures for each in plugins.loaded) else 0


def _part_line(failures: dict[str, str], what: str) -> str:
    return f"{what}  FAILED: {failures[what]}" if what in failures else what


def _test_plugin(arguments: argparse.Namespace) -> int:
    """Check a plug-in, and print each finding."""
    from sightline.app.configuration import default_catalogue
    from sightline.cli.program import EXIT_FAILED
    from sightline.plugins.conformance import check_plugin
    from sightline.plugins.loading import load_file, load_plugins

    options = dict(each.partition("=")[::2] for each in arguments.option)
    if not all("=" in each for each in arguments.option):
        raise Fault(Code.USAGE, "--option is NAME=VALUE", hint="Write for example --option region=us-east-1.")
    path = Path(arguments.file)
    if path.suffix == ".py" or path.exists():
        if not path.is_file():
            raise Fault(Code.USAGE, f"there is no file {path}", hint="Name the Python file of a plug-in.")
        loaded = load_file(path)
    else:
        loaded = load_plugins([arguments.file], None).loaded[0]
    if loaded.plugin is None:
        write(f"  NO   load  {loaded.failures['']}\n".encode("utf-8", "replace"))
        return EXIT_FAILED
    is_sound = True
    for finding in check_plugin(loaded.plugin, default_catalogue(), arguments.text, options):
        mark, detail = ("ok", "") if finding.problem is None else ("NO", f": {finding.problem}")
        write(f"  {mark:3}  {finding.what}  {finding.rule}{detail}\n".encode("utf-8", "replace"))
        is_sound = is_sound and finding.problem is None
    return 0 if is_sound else EXIT_FAILED
