"""How the commands are introduced: in groups, each with an example that can be typed as it stands."""

import argparse
from collections.abc import Iterator

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
