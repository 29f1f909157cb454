"""`sightline config`: show and check the active configuration."""

import argparse
import os
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, tell, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
        description="Forget what providers' counts have taught about the estimates of a model, or of all models.",
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
    faults = [Fault(Code.CONFIG, problem.text, hint=problem.hint) for problem in loaded.problems]
    place = loaded.path or "environment"
    faults += (
        [] if faults else [Fault(Code.CONFIG, f"{place}: {each.message}", hint=each.hint) for each in _unusable(loaded)]
    )
    for fault in faults:
        tell(fault)
    if faults:
        return EXIT_USAGE
    where = loaded.path or "no file, only the built-in catalogue"
    counts = f"{len(loaded.catalog.providers)} providers, {len(loaded.catalog.models)} models"
    write(os.fsencode(f"ok: {where} ({counts}, {len(loaded.catalog.routes)} routes)\n"))
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
        say(f"forgot what was learned about {len(gone)} kind{'' if len(gone) == 1 else 's'} of requests")
        return 0
    say(f"note: nothing was learned about {arguments.model}; `sightline doctor` lists what was")
    return EXIT_FAILED
