"""`sightline chat`: opens the chat's page, and lists, reads, asks, names, forks and deletes chats.

Everything goes through the server of the data folder: the running one, or otherwise one that is started and ends with
the command.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any
from urllib.parse import quote, urlencode

from sightline.app.configuration import configuration, data_folder
from sightline.app.running_server import call_server, find_server
from sightline.cli.options import instructions_in
from sightline.cli.program import EXIT_FAILED
from sightline.cli.shared_server import SharedServer, config_option, is_in_use, share_server
from sightline.cli.terminal import confirm, harmless, is_terminal, many, open_page, read, say, size_of, write
from sightline.errors import Code, Fault
from sightline.exchange.remote_relay import RunningServer
from sightline.model.json import Json
from sightline.platform.processes import replace_handlers, signals_named
from sightline.platform.support import require

_POLL_SECONDS = 0.2
"""Seconds between two polls of an answer that is arriving."""

_PAGE_SIZE = 200


@dataclass(frozen=True, slots=True)
class ChatApi:
    """The API calls of a server."""

    server: RunningServer

    def call(self, method: str, path: str, value: Json = None) -> Any:
        """The server's answer. Raises a Fault with the server's own message if it refuses the call."""
        return json.loads(call_server(self.server, method, path, value) or b"null")

    def find(self, name: str) -> Any:
        """The chat with this id or name. Raises a Fault if there is none, or if several have this name."""
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

    def view(self, chat: Any, **wanted: Json) -> str:
        """Create a view that shows all of this chat, and return its path."""
        path = f"/api/chats/{chat['id']}/views/command-{os.getpid()}"
        self.call("PUT", path, {"filter": "", "topic": "", **wanted})
        return path

    def pairs(self, chat: Any) -> Iterator[tuple[int, Any]]:
        """All pairs of a chat with their numbers."""
        view, total, number = self.view(chat), 1, 0
        while number < total:
            page = self.call("GET", f"{view}/rows?from={number}&limit={_PAGE_SIZE}")
            total = page["total"]
            for row in page["rows"]:
                number += 1
                yield number, row
            if not page["rows"]:
                return


@contextmanager
def _open_api(arguments: argparse.Namespace) -> Iterator[ChatApi]:
    """The API of the running server of the data folder, or of one that ends with the command."""
    running = find_server(data_folder(arguments.data).absolute())
    if running is not None:
        yield ChatApi(running)
        return
    with _share(arguments) as server:
        yield ChatApi(server)


@contextmanager
def _share(arguments: argparse.Namespace, *, apart: bool = False) -> Iterator[SharedServer]:
    require("run")
    loaded = configuration(arguments.config)
    at, folder = loaded.settings.server, data_folder(arguments.data).absolute()
    options = ["--log-level", arguments.log_level, *config_option(loaded)]
    with share_server(at.host, 0 if apart else at.port, folder, options=options, environment=os.environ) as server:
        yield server


def run_page(arguments: argparse.Namespace) -> int:
    """Find or start a server, open the page, and stay as long as the server needs this process."""
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
        if server.is_new or is_shared:  # otherwise the user started the server, and it keeps running by itself
            say("The chat runs until Ctrl-C.")
            stop.wait()
    return 0


def run_list(arguments: argparse.Namespace) -> int:
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
    with _open_api(arguments) as api:
        _write_line(api.call("POST", "/api/chats", {"name": arguments.new_name})["id"])
    return 0


def run_rename(arguments: argparse.Namespace) -> int:
    with _open_api(arguments) as api:
        chat = api.find(arguments.name)
        api.call("PUT", f"/api/chats/{chat['id']}", {"name": arguments.new_name})
    return 0


def run_fork(arguments: argparse.Namespace) -> int:
    """Begin a chat with the pairs of another up to one of them."""
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
    with _open_api(arguments) as api:
        chat = api.find(arguments.name)
        asked: Json = {"filter": f"session:{chat['session']}", "dry_run": True}
        record = None if arguments.keep_requests else api.call("POST", "/api/forget", asked)
        kept = "" if record is None else f", {many(record['exchanges'], 'request')} in the record"
        say(f"{chat['title']}: {many(chat['pairs'], 'pair')}{kept} will be deleted for good")
        if not arguments.yes and not confirm("Delete it?", "Add --yes to delete it without confirmation."):
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
        time.sleep(_POLL_SECONDS)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M") if at else " " * 16


def _write_line(text: str) -> None:
    write(f"{harmless(text)}\n".encode("utf-8", "replace"), ends_line=False)


def _write_json(values: list[Any]) -> None:
    for value in values:
        write(f"{json.dumps(value, ensure_ascii=False)}\n".encode("utf-8", "replace"), ends_line=False)


@contextmanager
def _end_on_signal() -> Iterator[Event]:
    """An event that is set when a signal asks the program to end. Ctrl-C interrupts as usual."""
    stop = threading.Event()
    with replace_handlers(lambda _number: stop.set(), *signals_named("SIGTERM", "SIGHUP", "SIGBREAK")):
        yield stop
