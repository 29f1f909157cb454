"""`sightline config`: shows and checks what is set."""

import argparse
import os

import msgspec

from sightline.app.configuration import Configuration, config_file, config_home, configuration, load_with_problems
from sightline.catalog.choose import choose
from sightline.cli.program import EXIT_FAILED, EXIT_USAGE
from sightline.cli.terminal import many, print_fault, say, write
from sightline.errors import Code, Fault
from sightline.exchange.recording.sharing import Redactor
from sightline.transport.http.dialling import Trust


def run_path(arguments: argparse.Namespace) -> int:
    found = config_file(arguments.config)
    if found is None:
        say("note: there is no configuration file; this is its default path")
    write(os.fsencode(found or config_home()) + b"\n")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
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


def _unusable(loaded: Configuration) -> list[Fault]:
    """Well-formed settings that cannot work: an unknown model, missing certificates, a broken expression."""
    faults = []
    try:
        Trust(ca_file=loaded.settings.network.ca_file, environment={}).context()
    except Fault as fault:
        faults.append(fault)
    try:
        Redactor(loaded.settings.export.patterns)
    except Fault as fault:
        faults.append(fault)
    try:
        if loaded.settings.ask.model:
            choose(loaded.catalog, loaded.settings.ask.model, has_key=loaded.has_key)
    except Fault as fault:
        faults.append(fault)
    return faults


def run_show(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)
    document = {**msgspec.to_builtins(loaded.settings), **msgspec.to_builtins(loaded.catalog)}
    write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return 0


def run_forget_learned(arguments: argparse.Namespace) -> int:
    from sightline.app.engine import counter  # imports most of the program, which no other action needs

    gone = counter(arguments.data).memory.forget(arguments.model)
    for name in gone:
        write(f"{name}\n".encode())
    if gone or not arguments.model:
        say(f"forgot what was learned about {many(len(gone), 'kind')} of requests")
        return 0
    say(f"note: nothing was learned about {arguments.model}; `sightline doctor` lists what was")
    return EXIT_FAILED
