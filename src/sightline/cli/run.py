"""`sightline run -- COMMAND`: starts a client and records its traffic."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from sightline.app.configuration import configuration, data_folder
from sightline.app.machine import SystemClock
from sightline.cli.clients import (
    CHATGPT,
    CHATGPT_SETTINGS,
    Stage,
    client_in,
    open_proxy,
    outfit,
    own_upstreams,
    refusal_notes,
    tls_outfit,
    version_of,
)
from sightline.cli.shared_server import config_option, hold_session, share_server
from sightline.cli.terminal import is_terminal, say, unusable
from sightline.errors import Code, Fault
from sightline.platform.processes import replace_handlers, signals_named
from sightline.platform.support import require
from sightline.platform.terminal import is_in_foreground

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 100
_LONGEST_TAG = 60


def run(arguments: argparse.Namespace) -> int:
    """Find or start a server, prepare the command, run it, and return its exit status."""
    require("run")
    words = _command(arguments)
    client, place = client_in(words)
    session = _session(arguments.session, client, SystemClock().now(), arguments.tag)
    loaded = configuration(arguments.config)
    at = loaded.settings.server
    # With --tls a client keeps its own destinations, whatever the server has configured.
    upstreams = (
        {}
        if arguments.tls
        else own_upstreams(os.environ, frozenset((name, at.port) for name in ("127.0.0.1", "localhost", "::1")))
    )
    # A server of our own sends requests to where the client would have sent them.
    variables = {f"SIGHTLINE_PROVIDERS_{provider.upper()}_BASE_URL": url for provider, url in upstreams.items()}
    folder = data_folder(arguments.data).absolute()
    serving = share_server(
        at.host,
        at.port,
        folder,
        options=["--log-level", arguments.log_level, *config_option(loaded)],
        environment={**CHATGPT_SETTINGS, **variables, **os.environ},
    )
    with TemporaryDirectory(prefix="sightline-run-") as private, serving as server:
        stage = Stage(
            server=server.url,
            session=session,
            environment=os.environ,
            home=Path.home(),
            folder=Path(private),
            providers=frozenset(loaded.catalog.providers) | ({CHATGPT} if server.is_new else set()),
            routes=bool(loaded.catalog.routes),
            version=version_of(words[place]),
        )
        if arguments.tls:
            proxy = open_proxy(server, session)
            fitted = tls_outfit(client, stage, proxy, loaded.settings.network.ca_file)
        else:
            fitted = outfit(client, stage)
        for path in (*fitted.files, *fitted.links):
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, text in fitted.files.items():
            path.write_text(text, "utf-8")
        for path, target in fitted.links.items():
            path.symlink_to(target.absolute())
        for note in (*fitted.notes, *([] if server.is_new else _upstream_notes(upstreams))):
            say(note)
        if arguments.hold or is_terminal(sys.stderr):
            say(f"Sightline records this as session {session}: {server.link}")
        behind = place + 1
        with hold_session(server, session, folder) if arguments.hold else nullcontext():
            status = _run_client([*words[:behind], *fitted.words, *words[behind:]], os.environ | fitted.variables)
        if arguments.tls:
            _tell_refusals(refusal_notes(server, session))
        return status


def _tell_refusals(notes: Iterator[str]) -> None:
    """Report which hosts the client could not reach. If the server cannot be asked, the client's status still
    counts."""
    try:
        for note in notes:
            say(note)
    except Fault as fault:
        say(f"note: whether the client accepted Sightline's certificates is not known: {fault.message}")


def _command(arguments: argparse.Namespace) -> list[str]:
    words: list[str] = arguments.words
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise Fault(Code.USAGE, "there is no command to run", hint="Put it after `--`: sightline run -- claude.")
    if shutil.which(words[0]) is None:
        if Path(words[0]).is_file():
            hint = "Name the program that runs it, such as `sightline run -- python FILE`, or make it executable."
            raise Fault(Code.USAGE, f"the file {words[0]!r} is not executable", hint=hint)
        hint = "Check its spelling, install it, or give its path."
        raise Fault(Code.USAGE, f"the command {words[0]!r} cannot be found", hint=hint)
    return words


def _session(named: str | None, client: str, now: float, tag: str | None) -> str:
    if tag is not None:
        if not tag.strip() or not tag.isprintable() or "#" in tag or len(tag) > _LONGEST_TAG:
            hint = f"Give it a printable name of 1 to {_LONGEST_TAG} characters without #."
            raise Fault(Code.USAGE, f"{tag!r} cannot be a tag", hint=hint)
        return f"{_session(named, client, now, None)}#{tag.strip()}"
    if named is None:
        project = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in Path.cwd().name)
        number, short = max(0, int(now) - 1_700_000_000), ""  # seconds since November 2023, which are short
        while number or not short:
            number, rest = divmod(number, len(_DIGITS))
            short = _DIGITS[rest] + short
        return f"{client}-{short}" + (f"@{project[:40]}" if project else "")
    # URLs are normalised on the way: `.` and `..` would be taken for path segments.
    if not named.strip() or named.strip(".") == "" or not named.isprintable() or len(named) > _LONGEST:
        hint = f"Give it a printable name of 1 to {_LONGEST} characters."
        raise Fault(Code.USAGE, f"{named!r} cannot be the name of a session", hint=hint)
    return named


def _upstream_notes(upstreams: Mapping[str, str]) -> Iterator[str]:
    for provider, url in upstreams.items():
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # without a password
        yield (
            f"note: the environment sends clients to {shown}; the running server sends them to its own "
            f"provider {provider}. [providers.{provider}] base_url in its sightline.toml changes that."
        )


def _run_client(words: list[str], environment: Mapping[str, str]) -> int:
    """Run the command with our streams, forwarding signals; returns its exit status."""
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    with _signals_for(children, early):
        try:
            children.append(subprocess.Popen(words, env=environment))
        except OSError as error:
            raise unusable(words[0], error) from None
        for number in early:
            children[0].send_signal(number)
        status = children[0].wait()
    return status if status >= 0 else 128 - status  # shells add 128 to the number of a signal too


def _signals_for(children: list[subprocess.Popen[bytes]], early: list[int]) -> AbstractContextManager[None]:
    """Forward signals. A terminal also sends its signals to the command, which must not get them twice. Signals that
    arrive while the command is being started, and may already run, are kept in `early`."""
    from_terminal = signals_named("SIGINT", "SIGQUIT") if is_in_foreground() else ()

    def hand_on(number: int) -> None:
        if not children:
            early.append(number)
        elif number not in from_terminal:
            children[0].send_signal(number)

    return replace_handlers(
        hand_on, *signals_named("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    )
