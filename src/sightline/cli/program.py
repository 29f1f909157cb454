"""The program: its arguments, and how every command ends."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

from sightline.cli.help import HelpFormatter, add_examples
from sightline.cli.terminal import say, settle, tell
from sightline.errors import Code, Fault

EXIT_FAILED, EXIT_USAGE, EXIT_PROVIDER, EXIT_INTERRUPTED = 1, 2, 3, 130

# A Fault from a provider has a status. These are raised here, before anything is sent.
_EXITS = {
    Code.TRANSLATION_LOSS: EXIT_FAILED,
    Code.USAGE: EXIT_USAGE,
    Code.CONFIG: EXIT_USAGE,
    Code.INVALID_REQUEST: EXIT_USAGE,
    Code.AUTH: EXIT_USAGE,
    Code.MODEL_UNKNOWN: EXIT_USAGE,
}


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage like every other error, and accepts arguments and options in any order."""

    _is_mixing = False

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **options)

    def parse_known_args(  # type: ignore[override] # its overloads are about the type of the namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments, in any order. argparse takes the words of one argument only if they are adjacent: of
        `traffic FILTER --limit 5 MORE` the last word would be left over."""
        parsed, left = super().parse_known_args(args, namespace)
        if self._is_mixing or self._subparsers is not None or all(word.startswith("-") for word in left):
            return parsed, left
        self._is_mixing = True
        try:
            return self.parse_known_intermixed_args(args, None)
        finally:
            self._is_mixing = False

    def error(self, message: str) -> NoReturn:
        raise Fault(Code.USAGE, message, hint=f"See `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    from sightline.cli import (
        ask,
        cache,
        chat,
        completion,
        config,
        context,
        costs,
        export,
        forget,
        harness,
        installation,
        plugin,
        run,
        runs,
        serve,
        show,
        traffic,
        translate,
    )
    from sightline.cli.evals import command as evals

    program: argparse.ArgumentParser = _Parser(
        prog="sightline",
        usage="sightline [-h] [--version] COMMAND ...",
        description="A local-first workbench and gateway for LLM requests. What you see is what you send.",
    )
    program.add_argument("--version", action="store_true", help="print the version and exit")
    commands = program.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    asking = (serve.add_serve, run.add_command, chat.add_command, ask.add_command, runs.add_resume, runs.add_runs)
    recorded = (
        traffic.add_traffic,
        show.add_show,
        show.add_replay,
        export.add_command,
        traffic.add_import,
        forget.add_command,
    )
    counted = (costs.add_command, context.add_command, cache.add_command)
    others = (harness.add_command, config.add_config, config.add_doctor, serve.add_local, translate.add_command)
    around = (installation.add_examples, installation.add_upgrade, installation.add_uninstall)
    installed = (*around, plugin.add_command, completion.add_command)
    for add in (*asking, evals.add_command, *recorded, *counted, *others, *installed):
        add(commands)
    add_examples(program)
    return program


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments: argparse.Namespace | None = None
    try:
        is_named = words and (not words[0].startswith("-") or words[0] in ("-h", "--help", "--version"))
        arguments = parser().parse_args(words if is_named else ["serve", *words])
        return _run(arguments)
    except Fault as fault:
        if _wants_traceback(words, arguments):
            say("".join(traceback.format_exception(fault)))
        tell(fault)
        return exit_code(fault)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of our output closed the pipe
    finally:
        settle()


def exit_code(fault: Fault) -> int:
    """The exit code for a Fault. Wrong usage keeps its code also if the page would get an HTTP status."""
    if fault.status is not None and fault.code not in (Code.USAGE, Code.CONFIG):
        return EXIT_PROVIDER
    return _EXITS.get(fault.code, EXIT_PROVIDER)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.version:
        from importlib.metadata import version

        print(version("sightline"))
        return 0
    code: int = arguments.run(arguments)
    return code


def _wants_traceback(words: list[str], arguments: argparse.Namespace | None) -> bool:
    """Whether --log-level debug is set. Arguments of a command that we start do not count."""
    if arguments is not None:
        return getattr(arguments, "log_level", "info") == "debug"
    words = words[: words.index("--")] if "--" in words else words
    return "--log-level=debug" in words or ("--log-level", "debug") in pairwise(words)
