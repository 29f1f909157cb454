"""The subcommands of `sightline eval` and their options."""

import argparse
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sightline.cli.options import add_apart, add_shared, amount, count, number

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

STORE = "the record in PostgreSQL: postgresql://…"


def add_command(commands: Commands) -> None:
    """Add `eval` and its subcommands."""
    command = commands.add_parser(
        "eval",
        help="run suites of cases, and show the results",
        description="Run suites of cases on models and agents, grade the answers, and compare runs.",
    )
    below = command.add_subparsers(title="commands", dest="eval_command", metavar="COMMAND", required=True)
    for add in (_add_run, _add_validate, _add_preview, _add_show, _add_compare, _add_import, _add_make):
        add(below)


def _add_run(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="run suites",
        description="Run suites of cases (AgentV's format, JSON lines, promptfoo's), grade the answers and report. "
        "The exit code is 1 where a case did not pass.",
    )
    command.add_argument("suites", nargs="*", metavar="SUITE", help="files, or folders with *.eval.yaml")
    command.add_argument(
        "--target", action="append", default=[], metavar="T", help="a target or model; several make a matrix"
    )
    command.add_argument("--judge", default="", metavar="T", help="the target or model that judges")
    command.add_argument("--trials", type=count, metavar="K", help="run each case K times")
    command.add_argument("--threshold", type=_share, metavar="S", help="what a case must reach to pass, from 0 to 1")
    command.add_argument("--budget-usd", type=amount, metavar="N", help="start nothing more once this is spent")
    command.add_argument(
        "--workers",
        type=_workers,
        metavar="N|ray://…",
        help="cases that run at once on each target (default: 8), or a cluster",
    )
    command.add_argument("--tag", action="append", default=[], metavar="TAG", help="only cases with one of these tags")
    command.add_argument("--exclude-tag", action="append", default=[], metavar="TAG", help="no cases with this tag")
    command.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases with such ids")
    _add_file_form(command)
    caching = command.add_mutually_exclusive_group()
    caching.add_argument("--cache", action="store_true", default=None, help="reuse answers to the same request")
    caching.add_argument("--no-cache", dest="cache", action="store_false", help="ask everything anew")
    again = command.add_mutually_exclusive_group()
    again.add_argument("--resume", default="", metavar="RUN", help="resume a run that was interrupted")
    again.add_argument("--rerun-failed", default="", metavar="RUN", help="run again what did not pass")
    again.add_argument("--dry-run", action="store_true", help="print what would be run, and send nothing")
    command.add_argument("--yes", action="store_true", help="run tools without approval")
    command.add_argument("--output", default="", metavar="DIR", help="write all exports of the results there")
    command.add_argument("--jsonl", default="", metavar="FILE", help="write the results, one JSON object a line")
    command.add_argument("--junit", default="", metavar="FILE", help="write the results as JUnit XML")
    add_apart(command)
    _finish(command, _handler("running", "run"), has_json=True)


def _add_validate(commands: Commands) -> None:
    command = commands.add_parser(
        "validate",
        help="check suites",
        description="Check suites: every problem with file, line, column and what to write instead.",
    )
    command.add_argument("suites", nargs="+", metavar="FILE", help="suites, or folders with *.eval.yaml")
    _finish(command, _handler("suites", "validate"), has_json=True, has_store=False)


def _add_preview(commands: Commands) -> None:
    command = commands.add_parser(
        "preview",
        help="show exactly what a case sends",
        description="Show what a case sends to a target: the exact body, the flat question, and what was changed or "
        "lost on the way. Nothing is sent.",
    )
    command.add_argument("suite", metavar="SUITE", help="a file")
    command.add_argument("case", metavar="CASE", help="the id of a case")
    command.add_argument("--target", default="", metavar="T", help="a target or model (default: as in `eval run`)")
    _add_file_form(command)
    command.add_argument(
        "--as", dest="form", choices=("wire", "flat", "messages"), help="only this, on stdout (default: all of it)"
    )
    _finish(command, _handler("suites", "preview"))


def _add_show(commands: Commands) -> None:
    command = commands.add_parser(
        "show",
        help="list runs, or show one, or a case of one",
        description="List the runs of suites, newest first; show how one ended; or show a case of it: what was sent, "
        "what was answered, and what each grader says.",
    )
    command.add_argument("run_id", nargs="?", default="", metavar="RUN", help="its id, or the beginning of it")
    command.add_argument("case", nargs="?", default="", metavar="CASE", help="the id of a case")
    command.add_argument("--target", default="", metavar="T", help="the case on this target (default: on all)")
    command.add_argument("--trial", type=count, metavar="N", help="this trial, counted from 1 (default: all)")
    command.add_argument("--suite", default="", metavar="FILE", help="only runs of this suite")
    command.add_argument("--limit", type=count, default=20, metavar="N", help="show at most N runs (default: 20)")
    _finish(command, _handler("showing", "show_runs"), has_json=True)


def _add_compare(commands: Commands) -> None:
    command = commands.add_parser(
        "compare",
        help="compare two runs, case by case",
        description="Compare two runs, or two files of results, on the cases that both have: the paired difference "
        "with its interval and exact tests, wins, losses and ties. It says so where the data cannot tell.",
    )
    command.add_argument("before", metavar="A", help="a run, or a file of --jsonl")
    command.add_argument("after", metavar="B", help="another one, or the same for two of its targets")
    command.add_argument("--target", default="", metavar="T", help="this target of both")
    command.add_argument("--target-a", default="", metavar="T", help="this target of A")
    command.add_argument("--target-b", default="", metavar="T", help="this target of B")
    command.add_argument("--tolerance", type=_share, default=0.0, metavar="S", help="scores this close are a tie")
    command.add_argument("--case", default="", metavar="ID", help="show the difference of one case")
    _finish(command, _handler("showing", "compare_sides"), has_json=True)


def _add_import(commands: Commands) -> None:
    command = commands.add_parser(
        "import",
        help="make a suite from a promptfoo file or from recorded exchanges",
        description="Write a suite in Sightline's form, from a promptfoo configuration or from recorded exchanges.",
    )
    command.add_argument("sources", nargs="+", metavar="FILE|ID", help="one promptfoo file, or ids of exchanges")
    _add_making(command)
    _finish(command, _handler("suites", "import_suite"))


def _add_make(commands: Commands) -> None:
    command = commands.add_parser(
        "make",
        help="make a case from recorded exchanges",
        description="Make a case of an exchange, or of several of one conversation: dates, ids and folders become "
        "variables, and the reply is proposed as what is expected.",
    )
    command.add_argument("sources", nargs="+", metavar="ID", help="ids of exchanges, or the beginnings of them")
    _add_making(command)
    _finish(command, _handler("suites", "make"))


def _add_making(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", default="", metavar="ID", help="the id of the case")
    command.add_argument("--from-turn", type=count, metavar="K", help="hold the conversation live from turn K on")
    command.add_argument("--contains", default="", metavar="WORDS", help="a good answer has these words")
    command.add_argument("--to", default="", metavar="FILE", help="append it to this suite (default: stdout)")


def _add_file_form(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--file-form",
        choices=("xml", "seed"),
        help='how files are written into a prompt: <file path="…"> (xml, the default), or === path === (seed)',
    )


def _finish(
    command: argparse.ArgumentParser,
    handler: Callable[[argparse.Namespace], int],
    *,
    has_json: bool = False,
    has_store: bool = True,
) -> None:
    if has_json:
        command.add_argument("--json", action="store_true", help="the result as JSON, one object a line")
    if has_store:
        command.add_argument("--store", default="", metavar="URL", help=STORE)
    add_shared(command)
    command.set_defaults(run=handler)


def _handler(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """A handler that imports the command's module when it is run."""

    def run(arguments: argparse.Namespace) -> int:
        from importlib import import_module

        with _few_collections():
            code: int = getattr(import_module(f"sightline.cli.evals.{module}"), function)(arguments)
        return code

    return run


def _workers(text: str) -> int | str:
    """Parse `--workers`: a number of cases, or the address of a cluster."""
    return text if text.startswith("ray:") else count(text)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage less often: cases create hardly any cycles, and each collection scans the whole suite, which took
    5 % of a run with many small cases."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _share(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to 1")
    return value
