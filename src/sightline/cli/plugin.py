"""`sightline plugin`: what is loaded and from where, and whether a plug-in keeps the laws."""

import argparse
from pathlib import Path

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write
from sightline.errors import Code, Fault


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
    listing.set_defaults(run=run_list)
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
    testing.set_defaults(run=run_test)


def run_list(arguments: argparse.Namespace) -> int:
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
            [] if each.plugin is None else [f"  {_outcome(each.failures, what)}" for what in each.plugin.contents()]
        )
        lines += [f"  NOT LOADED: {each.failures['']}"] if "" in each.failures else []
        write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    return EXIT_FAILED if any(each.failures for each in plugins.loaded) else 0


def _outcome(failures: dict[str, str], what: str) -> str:
    return f"{what}  FAILED: {failures[what]}" if what in failures else what


def run_test(arguments: argparse.Namespace) -> int:
    """Check a plug-in, and print each finding."""
    from sightline.app.configuration import built_in_catalogue
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
    for finding in check_plugin(loaded.plugin, built_in_catalogue(), arguments.text, options):
        mark, detail = ("ok", "") if finding.problem is None else ("NO", f": {finding.problem}")
        write(f"  {mark:3}  {finding.what}  {finding.rule}{detail}\n".encode("utf-8", "replace"))
        is_sound = is_sound and finding.problem is None
    return 0 if is_sound else EXIT_FAILED
