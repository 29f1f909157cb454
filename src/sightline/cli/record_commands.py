"""The commands for recorded exchanges, with their options."""

import argparse

from sightline.cli.options import Commands, count, finish, size
from sightline.exchange.recording.formats import FORMS


def add_traffic(commands: Commands) -> None:
    command = commands.add_parser(
        "traffic",
        help="list recorded exchanges, newest first",
        description="List exchanges of the record, newest first. A filter such as `model:claude-* & status:error & "
        'age<7d` or `text:"dad joke"` says which; it works while a server runs and when none does.',
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per line")
    command.add_argument(
        "--limit",
        type=size,
        default=50,
        metavar="N",
        help="the largest number to list (default: %(default)s; 0 is all)",
    )
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    finish(command, "traffic", "run", has_store=True)


def add_import(commands: Commands) -> None:
    command = commands.add_parser(
        "import",
        help="read exchanges from files into the record",
        description="Read JSON lines archives of `sightline export`, and HTTP archives (HAR) of any tool, into the "
        "record. A file is read whole before anything is taken from it; what is here already is not taken twice.",
    )
    command.add_argument("files", nargs="+", metavar="FILE", help="the files")
    finish(command, "archives", "run_import", has_store=True)


def add_export(commands: Commands) -> None:
    command = commands.add_parser(
        "export",
        help="write recorded exchanges to a file",
        description="Write recorded exchanges as a JSON lines archive that `sightline import` reads back as it was, as "
        "an HTTP archive for other tools, as one page or Markdown for people, or as commands that send the requests "
        "again. A filter says which; credentials are in none of them. With --redact, keys, addresses, numbers and "
        "names in the texts are replaced, too, and what was written is searched once more.",
    )
    command.add_argument(
        "--as",
        dest="form",
        default="jsonl",
        metavar="FORMAT",
        help=f"{', '.join(FORMS)}, or the format of a plug-in (default: %(default)s)",
    )
    command.add_argument("--redact", action="store_true", help="replace keys, addresses, numbers, names and hosts")
    command.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KIND|ID",
        help="with --redact, also leave out sections: system, user, assistant, thinking, calls, results, tools, "
        "attachments, or the id of one, as --sections lists it",
    )
    command.add_argument(
        "--pattern", action="append", default=[], metavar="REGEX", help="with --redact, also replace what matches"
    )
    command.add_argument(
        "--keep", action="append", default=[], metavar="VALUE|ID", help="do not replace this value, or this section"
    )
    command.add_argument(
        "--preview", action="store_true", help="only list what --redact would replace, and the replacements"
    )
    command.add_argument(
        "--sections", action="store_true", help="only list the sections, with the ids that --without and --keep take"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="the output file (default: stdout)")
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    finish(command, "archives", "run_export", has_store=True)


def add_show(commands: Commands) -> None:
    command = commands.add_parser(
        "show",
        help="show one recorded exchange",
        description="Show one exchange: a summary, or with --as the exact body that was sent, a command that sends it "
        "again, the request in the raw schema, the reply's events, every fact, an HTTP archive, or a page to share.",
    )
    forms = ("wire", "curl", "python", "canonical", "raw", "events", "facts", "har", "html")
    command.add_argument("--as", dest="form", choices=forms, help="the format (default: a summary)")
    command.add_argument("id", metavar="ID", help="its id, or how it begins")
    finish(command, "traffic", "run_show", has_store=True)


def add_replay(commands: Commands) -> None:
    command = commands.add_parser(
        "replay",
        help="send a recorded request again, or play its recorded answer",
        description="Send a recorded request again: the same bytes to the same provider, or with --to the same request "
        "to another model. It is recorded as a new exchange that names this one. Credentials are not on record, so the "
        "provider needs key_env. With --offline nothing is sent: the recorded answer comes as it came then.",
    )
    command.add_argument("--to", default="", metavar="MODEL", help="another model, or PROVIDER/MODEL")
    command.add_argument("--offline", action="store_true", help="send nothing; play the recorded answer")
    command.add_argument("--fast", action="store_true", help="with --offline: without the recorded delays")
    command.add_argument("--json", action="store_true", help="print the whole reply as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print usage, cost and time at the end")
    command.add_argument("id", metavar="ID", help="the id of an exchange, or how it begins")
    finish(command, "replay", "run", has_store=True)


def add_costs(commands: Commands) -> None:
    command = commands.add_parser(
        "costs",
        help="show what recorded exchanges cost",
        description="Add up tokens and costs of recorded exchanges, by day or whatever --by names. A cost that is not "
        "known is never counted as nothing: how many exchanges have none is shown beside the sum. With --reconcile, "
        "compare with a provider's usage or cost report, by day and model.",
    )
    command.add_argument(
        "--by",
        default="",
        metavar="NAMES",
        help="day, model, provider, client, session, project, tag, origin; several with commas (default: day)",
    )
    command.add_argument(
        "--as", dest="form", choices=("table", "csv", "json"), default="table", help="how it is printed"
    )
    command.add_argument(
        "--reconcile", default="", metavar="FILE", help="a usage or cost report of OpenAI or Anthropic as JSON, or CSV"
    )
    command.add_argument("--caps", action="store_true", help="show what is left of the caps instead")
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    finish(command, "costs", "run", has_store=True)


def add_cache(commands: Commands) -> None:
    command = commands.add_parser(
        "cache",
        help="show why the provider's cache missed",
        description="For every turn of a session: what the provider could have read from its prompt cache, what it "
        "read, and why not all of it; the tokens and money lost, summed by cause, and what would have saved them. "
        "Without a session or a filter, the session of the latest request.",
    )
    command.add_argument("--filter", default="", metavar="FILTER", help="other turns, such as 'age<1d' or 'client:c*'")
    command.add_argument(
        "--by", default="", choices=("day", "client", "model", "session"), help="sum the causes by this as well"
    )
    command.add_argument(
        "--keep", type=count, default=0, metavar="N", help="keep the edit with this number for later requests"
    )
    command.add_argument(
        "--for",
        dest="scope",
        choices=("session", "project", "all"),
        default="",
        help="with --keep: where (default: where it would have helped: the session, else the project, else all)",
    )
    _add_session(command)
    finish(command, "sessions", "run_cache", has_store=True)


def add_context(commands: Commands) -> None:
    command = commands.add_parser(
        "context",
        help="show what fills the context of a session",
        description="Show what the latest request of a session is made of: tokens by kind of content, by tool and by "
        "MCP server, the model's window and what would still fit. Without a session, the latest request of any client.",
    )
    _add_session(command)
    finish(command, "sessions", "run_context", has_store=True)


def add_forget(commands: Commands) -> None:
    command = commands.add_parser(
        "forget",
        help="remove recorded exchanges for good",
        description="Remove the exchanges that a filter matches from the record, its journal and its search index, so "
        "that no file contains them any more. Prints their number and size, and asks twice. It works with and without "
        "a running server. `id:*` matches every exchange.",
    )
    command.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    command.add_argument(
        "--copies",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also delete runs and eval runs that hold copies, and the copies in chats (default)",
    )
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("filter", nargs="+", metavar="FILTER", help="a filter")
    finish(command, "forget", "run", has_store=True)


def _add_session(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument("session", nargs="?", default="", metavar="SESSION", help="the name of a session")


COMMANDS = (add_traffic, add_import, add_export, add_show, add_replay, add_costs, add_cache, add_context, add_forget)
