"""The program: its arguments, its help (commands in groups, each with an example that can be typed as is), and how
every command ends."""

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from sightline.cli.terminal import print_fault, say, settle, write
from sightline.errors import Code, Fault

GROUPS = (
    ("See what clients send", ("serve", "run", "context", "chat")),
    ("Ask, with and without tools", ("ask", "resume", "runs", "harness")),
    ("Use the record", ("traffic", "show", "costs", "cache", "replay", "export", "import", "forget")),
    ("Evaluate and translate", ("eval", "translate")),
    ("Set up", ("config", "doctor", "local", "plugin", "examples", "completion", "upgrade", "uninstall")),
)

EXAMPLES = {
    "serve": ("sightline serve --port 8801 --no-open",),
    "run": ("sightline run -- claude", "sightline run --hold -- python client.py"),
    "chat": ("sightline chat", 'sightline chat --chat "Holiday plans"'),
    "chat list": ("sightline chat list", "sightline chat list train tickets"),
    "chat show": ('sightline chat show "Holiday plans"',),
    "chat new": ('sightline chat new "Holiday plans"',),
    "chat send": ('sightline chat send "Holiday plans" "And by train?"',),
    "chat rename": ('sightline chat rename "Holiday plans" Lisbon',),
    "chat fork": ("sightline chat fork Lisbon 3 --name Porto",),
    "chat delete": ("sightline chat delete Porto",),
    "ask": (
        'sightline ask -m gpt-4o "What is a monad?"',
        'sightline ask -f notes.md --dry-run --as curl "Shorten this."',
    ),
    "resume": ("sightline resume run_01H8Z3",),
    "runs": ("sightline runs --json",),
    "harness": ("sightline harness examples/harness.json",),
    "traffic": ('sightline traffic "model:claude-* & age<1h"',),
    "show": ("sightline show ex_01H8Z3 --as wire",),
    "context": ("sightline context",),
    "cache": ("sightline cache",),
    "costs": ("sightline costs --by day,model", 'sightline costs "age<30d" --as csv'),
    "replay": ("sightline replay ex_01H8Z3 --to gpt-4o",),
    "export": ('sightline export "client:codex" -o codex.jsonl',),
    "import": ("sightline import codex.jsonl",),
    "forget": ("sightline forget 'age>30d' --dry-run", "sightline forget 'session:demo'"),
    "eval run": ("sightline eval run examples/evals/support.eval.yaml --target gpt-4o",),
    "eval validate": ("sightline eval validate suite.eval.yaml",),
    "eval preview": ("sightline eval preview suite.eval.yaml order --target gpt-4o",),
    "eval show": ("sightline eval show",),
    "eval compare": ("sightline eval compare BEFORE AFTER",),
    "eval import": ("sightline eval import promptfooconfig.yaml",),
    "eval make": ("sightline eval make ex_01H8Z3",),
    "translate request": ("sightline translate request --from openai-chat --to anthropic request.json",),
    "translate reply": ("sightline translate reply --from anthropic --to openai-chat reply.json",),
    "translate stream": ("sightline translate stream --from openai-responses --to reply stream.sse",),
    "config path": ("sightline config path",),
    "config check": ("sightline config check --config sightline.toml",),
    "config show": ("sightline config show",),
    "config forget-learned": ("sightline config forget-learned openai/gpt-4o",),
    "doctor": ("sightline doctor",),
    "local": ("sightline local install", 'eval "$(sightline local)"'),
    "plugin list": ("sightline plugin list",),
    "plugin test": ("sightline plugin test plugins/acme.py",),
    "examples": ("sightline examples my-examples",),
    "completion": ('eval "$(sightline completion bash)"', "sightline completion fish | source"),
    "upgrade check": ("sightline upgrade check",),
    "uninstall": ("sightline uninstall", "sightline uninstall --remove data --remove settings"),
}
"""Examples that a user would type, by the command's full name."""


class HelpFormatter(argparse.HelpFormatter):
    """Keeps the line breaks of a text that has some: examples are one per line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def commands_below(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its full name, `eval run` after `eval`."""
    for name, below in choices_of(parser).items():
        full = f"{path} {name}".strip()
        yield full, below
        yield from commands_below(below, full)


def choices_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands directly below this one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def summaries_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """A short description of each command directly below this one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {each.dest: each.help or "" for each in action._choices_actions}
    return {}


def add_examples(program: argparse.ArgumentParser) -> None:
    """Add its examples to each command, and its groups of commands to the program."""
    for path, command in commands_below(program):
        if path in EXAMPLES:
            lines = "\n".join(f"  {line}" for line in EXAMPLES[path])
            before = f"{command.epilog}\n\n" if command.epilog else ""
            command.epilog = f"{before}examples:\n{lines}"
    summaries = summaries_of(program)
    width = max(map(len, summaries)) + 2
    groups = [
        "\n".join([f"{title}:", *(f"  {name:{width}}{summaries[name]}" for name in names)]) for title, names in GROUPS
    ]
    ending = "Without a command, `serve` runs. `sightline COMMAND --help` has its options and examples."
    program.epilog = "\n\n".join([*groups, ending])


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
        """Parse the arguments, in any order. argparse takes the words of one argument only if they are adjacent: in
        `traffic FILTER --limit 5 MORE` the last word would be left over."""
        parsed, left = super().parse_known_args(args, namespace)
        if self._is_mixing or not left:
            return parsed, left
        if self._subparsers is None and not all(word.startswith("-") for word in left):
            self._is_mixing = True
            try:
                parsed, left = self.parse_known_intermixed_args(args, None)
            finally:
                self._is_mixing = False
        if left:  # reported here, the error points to the help of this command and not to that of the program
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left

    def print_help(self, file: Any = None) -> None:
        """Print the help like all other output: in UTF-8, and with an error if it cannot be written."""
        write(self.format_help().encode())

    def error(self, message: str) -> NoReturn:
        raise Fault(Code.USAGE, message, hint=f"See `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    from sightline.cli import commands, record_commands
    from sightline.cli.evals import command as evals

    program: argparse.ArgumentParser = _Parser(
        prog="sightline",
        usage="sightline [-h] [--version] COMMAND ...",
        description="A local-first workbench and gateway for LLM requests. What you see is what you send.",
    )
    program.add_argument("--version", action="store_true", help="print the version and exit")
    # Without `prog` the usage above would be part of every command's name.
    below = program.add_subparsers(prog="sightline", dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    for add in (*commands.COMMANDS, evals.add_command, *record_commands.COMMANDS, *commands.SETUP_COMMANDS):
        add(below)
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
        print_fault(fault)
        return exit_code(fault)
    except UnicodeEncodeError as error:
        # Files can have such names; ids, sessions and the like cannot, and are looked up in many places.
        word = next((each for each in words if each.encode(errors="ignore").decode() != each), None)
        if word is None:
            raise
        if _wants_traceback(words, arguments):
            say("".join(traceback.format_exception(error)))
        print_fault(Fault(Code.USAGE, f"{word!r} is not UTF-8 text", hint="Check its spelling and the locale."))
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of our output closed the pipe
    finally:
        settle()


def exit_code(fault: Fault) -> int:
    """The exit code for a Fault. Wrong usage keeps its code even if the Fault has an HTTP status for the page."""
    if fault.status is not None and fault.code not in (Code.USAGE, Code.CONFIG):
        return EXIT_PROVIDER
    return _EXITS.get(fault.code, EXIT_PROVIDER)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.version:
        from importlib.metadata import version

        write(f"{version('sightline')}\n".encode())
        return 0
    code: int = arguments.run(arguments)
    return code


def _wants_traceback(words: list[str], arguments: argparse.Namespace | None) -> bool:
    """Whether --log-level debug is set. Arguments of a command that we start do not count."""
    if arguments is not None:
        return getattr(arguments, "log_level", "info") == "debug"
    words = words[: words.index("--")] if "--" in words else words
    return "--log-level=debug" in words or ("--log-level", "debug") in pairwise(words)
