"""`sightline chat`: open the chat's page, and list, read, ask, name, fork and delete chats.

Everything goes through the server of the data folder: the one that runs, else one that is started and ends with the
command.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sightline.cli.options import add_shared, instructions_in
from sightline.cli.terminal import harmless, is_terminal, many, read, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from threading import Event

    from sightline.cli.shared_server import SharedServer
    from sightline.exchange.remote_relay import RunningServer
    from sightline.model.json import Json

_LOOK = 0.2
"""Seconds between two looks at an answer that arrives."""

_AT_ONCE = 200


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `chat` and what is below it."""
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
    add_shared(command)
    command.set_defaults(run=run_page)
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION")
    for add in (_add_list, _add_show, _add_new, _add_send, _add_rename, _add_fork, _add_delete):
        below = add(actions)
        add_shared(below)


def _add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, words: str, description: str
) -> argparse.ArgumentParser:
    # What stands before the action is not overwritten by what it leaves out.
    return actions.add_parser(name, help=words, description=description, argument_default=argparse.SUPPRESS)


def _add_list(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(
        actions, "list", "list chats, or search them", "List the chats, the one that was used last first."
    )
    below.add_argument("words", nargs="*", default=[], metavar="WORDS", help="only chats that have these words")
    below.add_argument("--json", action="store_true", default=False, help="one JSON object a line")
    below.set_defaults(run=run_list)
    return below


def _add_show(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(
        actions, "show", "print a chat", "Print the questions and answers of a chat with their numbers."
    )
    below.add_argument("name", metavar="CHAT", help="its name, or its id")
    below.add_argument("--json", action="store_true", default=False, help="one JSON object a line")
    below.set_defaults(run=run_show)
    return below


def _add_new(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(actions, "new", "begin a chat", "Begin an empty chat and print its id.")
    below.add_argument("new_name", nargs="?", default="", metavar="NAME", help="without it, the first question")
    below.set_defaults(run=run_new)
    return below


def _add_send(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(
        actions,
        "send",
        "ask a question in a chat",
        "Ask a question in a chat, with all that was said in it before, and print the answer. Ctrl-C stops it; what "
        "has arrived stays in the chat.",
    )
    below.add_argument("-m", "--model", default="", metavar="MODEL", help="the model (default: the chat's last one)")
    below.add_argument("name", metavar="CHAT", help="its name, or its id; `main` is the first one")
    below.add_argument("prompt", metavar="PROMPT", help="the question; - reads it from stdin")
    below.set_defaults(run=run_send)
    return below


def _add_rename(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(actions, "rename", "name a chat", "Give a chat another name; '' is its first question again.")
    below.add_argument("name", metavar="CHAT", help="its name, or its id")
    below.add_argument("new_name", metavar="NAME", help="the new name")
    below.set_defaults(run=run_rename)
    return below


def _add_fork(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(
        actions,
        "fork",
        "begin a chat with what another has up to a pair",
        "Begin a chat with the questions and answers of another up to one of them, and print its id. The other chat "
        "stays as it is.",
    )
    below.add_argument("--name", dest="new_name", default="", metavar="NAME", help="the name of the new chat")
    below.add_argument("name", metavar="CHAT", help="its name, or its id")
    below.add_argument(
        "pair", metavar="PAIR", help="the last pair that is copied: its number in `chat show`, or its id"
    )
    below.set_defaults(run=run_fork)
    return below


def _add_delete(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    below = _add_action(
        actions,
        "delete",
        "delete a chat for good",
        "Delete a chat, its requests in the record and its runs, so that no file holds them any more. The first chat "
        "is empty afterwards.",
    )
    below.add_argument(
        "--keep-requests", action="store_true", default=False, help="leave its requests and runs in the record"
    )
    below.add_argument("--yes", action="store_true", default=False, help="do not ask")
    below.add_argument("name", metavar="CHAT", help="its name, or its id")
    below.set_defaults(run=run_delete)
    return below


@dataclass(frozen=True, slots=True)
class ChatApi:
    """The calls of a server."""

    server: "RunningServer"

    def call(self, method: str, path: str, value: "Json" = None) -> Any:
        """What the server answers; what it refuses is a fault with its own words."""
        import json

        from sightline.app.running_server import call_server

        return json.loads(call_server(self.server, method, path, value) or b"null")

    def find(self, name: str) -> Any:
        """The chat with this id or name; a fault if there is none, or if several have this name."""
        chats = self.call("GET", "/api/chats")
        wanted = " ".join(name.split()).lower()
        by_id = [chat for chat in chats if chat["id"] == name]
        named = [chat for chat in chats if chat["title"].lower() == wanted]
        begun = [chat for chat in chats if wanted and chat["title"].lower().startswith(wanted)]
        found = by_id or named or begun
        if len(found) == 1:
            return found[0]
        if found:
            hint = f"Use an id: {', '.join(chat['id'] for chat in found[:8])}."
            raise Fault(Code.USAGE, f"{many(len(found), 'chat')} are called {harmless(name)!r}", hint=hint)
        raise Fault(Code.USAGE, f"there is no chat {harmless(name)!r}", hint="`sightline chat list` shows all chats.")

    def view(self, chat: Any, **wanted: "Json") -> str:
        """The path of a view of this chat that shows all of it."""
        import os

        path = f"/api/chats/{chat['id']}/views/command-{os.getpid()}"
        self.call("PUT", path, {"filter": "", "topic": "", **wanted})
        return path

    def pairs(self, chat: Any) -> Iterator[tuple[int, Any]]:
        """All pairs of a chat with their numbers."""
        view, total, number = self.view(chat), 1, 0
        while number < total:
            page = self.call("GET", f"{view}/rows?from={number}&limit={_AT_ONCE}")
            total = page["total"]
            for row in page["rows"]:
                number += 1
                yield number, row
            if not page["rows"]:
                return


@contextmanager
def _open_api(arguments: argparse.Namespace) -> Iterator[ChatApi]:
    """The running server of the data folder, or one that ends with the command."""
    from sightline.app.configuration import data_folder
    from sightline.app.running_server import find_server

    running = find_server(data_folder(arguments.data).absolute())
    if running is not None:
        yield ChatApi(running)
        return
    with _share(arguments) as server:
        yield ChatApi(server)


@contextmanager
def _share(arguments: argparse.Namespace, *, apart: bool = False) -> "Iterator[SharedServer]":
    import os

    from sightline.app.configuration import configuration, data_folder
    from sightline.cli.run import config_option
    from sightline.cli.shared_server import share_server
    from sightline.platform.support import require

    require("run")
    loaded = configuration(arguments.config)
    at, folder = loaded.settings.server, data_folder(arguments.data).absolute()
    options = ["--log-level", arguments.log_level, *config_option(loaded)]
    with share_server(at.host, 0 if apart else at.port, folder, options=options, environment=os.environ) as server:
        yield server


def run_page(arguments: argparse.Namespace) -> int:
    """Find or start a server, open the page, and stay as long as the server needs this process."""
    from urllib.parse import quote

    from sightline.app.configuration import data_folder
    from sightline.cli.serve import open_page
    from sightline.cli.shared_server import is_in_use
    from sightline.platform.support import require

    require("run")
    is_shared = is_in_use(data_folder(arguments.data).absolute())
    with _end_on_signal() as stop, _share(arguments, apart=arguments.apart) as server:
        api = ChatApi(server)
        if arguments.instructions is not None:
            api.call("PUT", "/api/chat/topics", {"instructions": instructions_in(arguments.instructions)})
        chat = "main" if arguments.chat is None else api.find(arguments.chat)["id"]
        link = f"{server.link}#/chat{'' if chat == 'main' else f'/{quote(chat)}'}"
        write(f"{link}\n".encode(), ends_line=False)
        if not arguments.no_open:
            open_page(link)
        if server.is_new or is_shared:  # else the user started the server, and it stays up by itself
            say("The chat runs until Ctrl-C.")
            stop.wait()
    return 0


def run_list(arguments: argparse.Namespace) -> int:
    """Print a line for each chat."""
    from urllib.parse import urlencode

    with _open_api(arguments) as api:
        chats = api.call("GET", f"/api/chats?{urlencode({'text': ' '.join(arguments.words)})}")
    if arguments.json:
        _write_json(chats)
        return 0
    if not chats:
        say("no chat contains these words")
    width = max((len(chat["id"]) for chat in chats), default=0)
    for chat in chats:
        mark = ", an answer is on its way" if chat["is_sending"] else ""
        _write_line(
            f"{chat['id']:{width}}  {_when(chat['latest'])}  {chat['title']} ({many(chat['pairs'], 'pair')}{mark})"
        )
        if chat["found"]:
            _write_line(f"{'':{width}}  {chat['found']}")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print the pairs of a chat."""
    with _open_api(arguments) as api:
        for number, pair in api.pairs(api.find(arguments.name)):
            if arguments.json:
                _write_json([pair])
                continue
            answer, trouble = pair["answer"], pair["trouble"]
            _write_line(f"#{number}  {pair['model']}  {_when(pair['at'])}  {pair['id']}")
            _write_line("\n".join(f"> {line}" for line in pair["user_text"].splitlines() or [""]))
            if answer is not None:
                _write_line(f"\n{answer['text']}")
            if trouble is not None:
                _write_line(f"\n({trouble['line']})")
            _write_line("")
    return 0


def run_new(arguments: argparse.Namespace) -> int:
    """Begin a chat."""
    with _open_api(arguments) as api:
        _write_line(api.call("POST", "/api/chats", {"name": arguments.new_name})["id"])
    return 0


def run_rename(arguments: argparse.Namespace) -> int:
    """Name a chat."""
    with _open_api(arguments) as api:
        chat = api.find(arguments.name)
        api.call("PUT", f"/api/chats/{chat['id']}", {"name": arguments.new_name})
    return 0


def run_fork(arguments: argparse.Namespace) -> int:
    """Begin a chat with what another has up to a pair."""
    with _open_api(arguments) as api:
        chat, wanted = api.find(arguments.name), arguments.pair.removeprefix("#")
        found = next((pair["id"] for number, pair in api.pairs(chat) if wanted in (str(number), pair["id"])), None)
        if found is None:
            hint = "`sightline chat show` prints the pairs of a chat with their numbers."
            raise Fault(Code.USAGE, f"there is no pair {harmless(arguments.pair)!r} in this chat", hint=hint)
        body = {"pair": found, "name": arguments.new_name}
        _write_line(api.call("POST", f"/api/chats/{chat['id']}/fork", body)["id"])
    return 0


def run_delete(arguments: argparse.Namespace) -> int:
    """Say what will go, ask, and delete it."""
    from sightline.cli.forget import size_of
    from sightline.cli.program import EXIT_FAILED

    with _open_api(arguments) as api:
        chat = api.find(arguments.name)
        asked: Json = {"filter": f"session:{chat['session']}", "dry_run": True}
        record = None if arguments.keep_requests else api.call("POST", "/api/forget", asked)
        kept = "" if record is None else f", {many(record['exchanges'], 'request')} in the record"
        say(f"{chat['title']}: {many(chat['pairs'], 'pair')}{kept} will be deleted for good")
        if not arguments.yes:
            if not is_terminal(sys.stdin):
                raise Fault(
                    Code.USAGE, "there is no terminal to ask at", hint="Add --yes to delete it without confirmation."
                )
            say("Delete it? [y/N] ", end="")
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                say("nothing was deleted")
                return EXIT_FAILED
        query = "" if arguments.keep_requests else "?requests=1"
        gone = api.call("DELETE", f"/api/chats/{chat['id']}{query}")
        if gone["exchanges"]:
            say(f"deleted, with {many(gone['exchanges'], 'request')}, {size_of(gone['bytes'])}")
        else:
            say("deleted")
    return 0


def run_send(arguments: argparse.Namespace) -> int:
    """Ask, and print the answer as it arrives."""
    text = read("-").decode("utf-8", "replace") if arguments.prompt == "-" else arguments.prompt
    with _open_api(arguments) as api:
        chat = api.find(arguments.name)
        wanted = {"model": arguments.model} if arguments.model else {}
        view = api.view(chat, **wanted).rpartition("/")[2]
        at = f"/api/chats/{chat['id']}"
        pair = api.call("POST", f"{at}/send", {"view": view, "text": text, "quota": "wait"})["pair"]
        try:
            shown = _follow(api, f"{at}/pairs/{pair}")
        except KeyboardInterrupt:
            api.call("POST", f"{at}/cancel", {})
            raise
    trouble = shown["trouble"]
    if trouble is None:
        return 0
    known = trouble["code"] in {code.value for code in Code}
    code = Code(trouble["code"]) if known else Code.UPSTREAM_ERROR
    raise Fault(code, trouble["message"], hint=trouble["hint"], status=502)


def _follow(api: ChatApi, path: str) -> Any:
    """Print an answer while it arrives; returns the pair when it has ended."""
    import time

    printed = ""
    while True:
        shown = api.call("GET", path)
        answer = shown["answer"]
        text = "" if answer is None else answer["text"]
        is_over = shown["state"] != "sending"
        if text.startswith(printed) and (is_over or is_terminal(sys.stdout)):
            fresh = text[len(printed) :]
            write((harmless(fresh) if is_terminal(sys.stdout) else fresh).encode("utf-8", "replace"), ends_line=is_over)
            printed = text
        if is_over:
            return shown
        time.sleep(_LOOK)


def _when(at: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M") if at else " " * 16


def _write_line(text: str) -> None:
    write(f"{harmless(text)}\n".encode("utf-8", "replace"), ends_line=False)


def _write_json(values: list[Any]) -> None:
    import json

    for value in values:
        write(f"{json.dumps(value, ensure_ascii=False)}\n".encode("utf-8", "replace"), ends_line=False)


@contextmanager
def _end_on_signal() -> "Iterator[Event]":
    """An event that is set when a signal asks the program to end. Ctrl-C interrupts it as usual."""
    import threading

    from sightline.platform.processes import replace_handlers, signals_named

    stop = threading.Event()
    with replace_handlers(lambda _number: stop.set(), *signals_named("SIGTERM", "SIGHUP", "SIGBREAK")):
        yield stop
