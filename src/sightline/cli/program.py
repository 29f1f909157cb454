"""The program: its arguments, its help (commands in groups, each with an example that can be typed as it stands), how
every command ends; and `sightline completion`, whose scripts are made from the parser.
"""

import argparse
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""Commands with what a user would type, by the command's full name."""


class HelpFormatter(argparse.HelpFormatter):
    """Keeps the line ends of a text that has some: examples are one to a line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def commands_below(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its full name, `eval run` after `eval`."""
    for name, below in choices_of(parser).items():
        full = f"{path} {name}".strip()
        yield full, below
        yield from commands_below(below, full)


def choices_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands right below this one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def summaries_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What each command right below this one does, in a few words."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {each.dest: each.help or "" for each in action._choices_actions}
    return {}


def add_examples(program: argparse.ArgumentParser) -> None:
    """Give each command its examples, and the program its groups of commands."""
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
        """Parse the arguments, in any order. argparse takes the words of one argument only if they are adjacent: of
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
        if left:  # said here, the error leads to the help of this command and not to that of the program
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        raise Fault(Code.USAGE, message, hint=f"See `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    from sightline.cli import (
        ask,
        chat,
        config,
        costs,
        forget,
        installation,
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
    # Without `prog` the usage above would be part of the name of every command.
    commands = program.add_subparsers(prog="sightline", dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    asking = (serve.add_serve, run.add_command, chat.add_command, ask.add_command, runs.add_resume, runs.add_runs)
    recorded = (
        traffic.add_traffic,
        show.add_show,
        show.add_replay,
        traffic.add_export,
        traffic.add_import,
        forget.add_command,
    )
    counted = (costs.add_costs, costs.add_context, costs.add_cache)
    others = (runs.add_harness, config.add_config, config.add_doctor, serve.add_local, translate.add_command)
    around = (installation.add_examples, installation.add_upgrade, installation.add_uninstall)
    installed = (*around, config.add_plugin, add_completion)
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
        print_fault(fault)
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


@dataclass(frozen=True, slots=True)
class Completions:
    """What may follow a command: words with what they mean, and for an option the values that it takes."""

    words: dict[str, str]
    values: dict[str, tuple[str, ...]]


def add_completion(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `completion`."""
    command = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description="Print a script for a shell that completes commands, options and their values. The shell reads it "
        "when it starts, or once by the command below.",
    )
    command.add_argument("shell", choices=tuple(_SHELLS), help="the shell")
    command.set_defaults(run=_print_completion)


def _print_completion(arguments: argparse.Namespace) -> int:
    """Print the script."""
    write(_SHELLS[arguments.shell](_completions(parser())).encode())
    return 0


def _completions(program: argparse.ArgumentParser) -> dict[str, Completions]:
    """What completes each command, by its full name; "" is the program itself."""
    return {path: _completions_of(command) for path, command in (("", program), *commands_below(program))}


def _completions_of(command: argparse.ArgumentParser) -> Completions:
    words = summaries_of(command)
    values: dict[str, tuple[str, ...]] = {}
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            words |= {option: _in_a_line(action.help) for option in action.option_strings if option.startswith("--")}
            values |= {option: choices for option in action.option_strings if choices}
        else:
            words |= dict.fromkeys(choices, _in_a_line(action.help))
    return Completions(words, values)


def _in_a_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def _value_cases(found: dict[str, Completions]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for path, each in found.items():
        for option, choices in each.values.items():
            yield f"{path} {option}".strip(), choices


def _bash(found: dict[str, Completions]) -> str:
    known = "|".join(shlex.quote(path) for path in found if path)
    words = "\n".join(
        f"    {shlex.quote(path)}) words={shlex.quote(' '.join(each.words))} ;;" for path, each in found.items()
    )
    values = "\n".join(
        f"    {shlex.quote(at)}) words={shlex.quote(' '.join(taken))} ;;" for at, taken in _value_cases(found)
    )
    return f"""\
# bash completion of sightline
_sightline() {{
  local at taken='' words='' next
  for ((at = 1; at < COMP_CWORD; at++)); do
    [ "${{COMP_WORDS[at]}}" = -- ] && return  # the words of another program
    next="${{taken:+$taken }}${{COMP_WORDS[at]}}"
    case "$next" in
    {known}) taken=$next ;;
    esac
  done
  case "$taken" in
{words}
  esac
  case "${{taken:+$taken }}${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _sightline sightline
"""


def _zsh(found: dict[str, Completions]) -> str:
    def describe(each: Completions) -> str:
        return " ".join(shlex.quote(f"{word}:{meaning}") for word, meaning in each.words.items())

    known = "|".join(shlex.quote(path) for path in found if path)
    words = "\n".join(f"    ({shlex.quote(path)}) found=({describe(each)}) ;;" for path, each in found.items())
    values = "\n".join(f"    ({shlex.quote(at)}) found=({' '.join(taken)}) ;;" for at, taken in _value_cases(found))
    return f"""\
#compdef sightline
_sightline() {{
  local taken='' word next
  local -a found
  for word in ${{words[2,CURRENT-1]}}; do
    [[ $word == -- ]] && {{ _normal; return }}  # the words of another program
    next="${{taken:+$taken }}$word"
    case $next in
    ({known}) taken=$next ;;
    esac
  done
  case $taken in
{words}
  esac
  case "${{taken:+$taken }}${{words[CURRENT-1]}}" in
{values}
  esac
  _describe sightline found || _files
}}
compdef _sightline sightline
"""


def _fish(found: dict[str, Completions]) -> str:
    def quote(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = [
        f"complete -c sightline -n {quote(f'__sightline_at {quote(path)}')} {_fish_word(word)} -d {quote(meaning)}"
        for path, each in found.items()
        for word, meaning in each.words.items()
    ]
    lines += [
        f"complete -c sightline -n {quote(f'__sightline_after {quote(at)}')} -f -a {quote(' '.join(taken))}"
        for at, taken in _value_cases(found)
    ]
    known = " ".join(quote(path) for path in found if path)
    body = "\n".join(lines)
    return f"""\
# fish completion of sightline
function __sightline_taken
  set -l taken
  for word in (commandline -opc)[2..]
    test "$word" = --; and return 1
    set -l next (string join ' ' -- $taken $word)
    contains -- "$next" {known}; and set taken $taken $word
  end
  string join ' ' -- $taken
  return 0
end
function __sightline_at
  set -l taken (__sightline_taken); and test "$taken" = "$argv[1]"
end
function __sightline_after
  set -l taken (__sightline_taken); and test (string join ' ' -- $taken (commandline -opc)[-1]) = "$argv[1]"
end
{body}
"""


def _fish_word(word: str) -> str:
    return f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-f -a {word}"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
