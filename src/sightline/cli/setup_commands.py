"""The commands for the installation and its settings, with their options."""

from sightline.cli.options import Commands, finish, handler


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


COMMANDS = (add_config, add_doctor, add_plugin, add_examples, add_upgrade, add_uninstall, add_completion)
