"""`sightline plugin`: lists what is loaded, and checks whether a plug-in follows the rules of its kinds."""

import argparse
from pathlib import Path

from sightline.app.configuration import default_catalogue, load_with_problems
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import say, write, write_lines
from sightline.errors import Code, Fault
from sightline.plugins.conformance import check_plugin
from sightline.plugins.loading import load_file, load_plugins


def run_list(arguments: argparse.Namespace) -> int:
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


def run_test(arguments: argparse.Namespace) -> int:
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
