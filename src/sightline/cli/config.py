"""`sightline config`: which configuration is in force, whether it is right, and what it says."""

import argparse

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`config`, and below it `path`, `check` and `show`."""
    command = commands.add_parser(
        "config",
        help="show and check the configuration",
        description="Show and check what is set: the built-in catalogue, sightline.toml and SIGHTLINE_ variables.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, what, run in (
        ("path", "print the file that is in use", _path),
        ("check", "name every problem by file and line", _check),
        ("show", "print what is in force, as JSON", _show),
    ):
        action = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        add_shared(action)
        action.set_defaults(run=run)


def _path(arguments: argparse.Namespace) -> int:
    from sightline.build import config_file, config_home

    found = config_file(arguments.config)
    if found is None:
        say("note: there is no configuration file; this is where one would be found")
    write(f"{found or config_home()}\n".encode())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from sightline.build import examined
    from sightline.cli.program import EXIT_USAGE

    loaded = examined(arguments.config)
    for problem in loaded.problems:
        say(problem.text)
        if problem.hint:
            say(f"  hint: {problem.hint}")
    if loaded.problems:
        return EXIT_USAGE
    where = loaded.path or "no file, the built-in catalogue alone"
    counts = f"{len(loaded.catalog.providers)} providers, {len(loaded.catalog.models)} models"
    write(f"ok: {where} ({counts}, {len(loaded.catalog.routes)} routes)\n".encode())
    return 0


def _show(arguments: argparse.Namespace) -> int:
    import msgspec

    from sightline.build import configuration

    loaded = configuration(arguments.config)
    document = {**msgspec.to_builtins(loaded.settings), **msgspec.to_builtins(loaded.catalog)}
    write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return 0
