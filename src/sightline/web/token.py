"""The workbench's token: created once, readable by its owner only, and the same after a restart."""

import contextlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from sightline.errors import Code, Fault

FILE_NAME = "token"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,}")
"""At least 128 bits in URL-safe base64."""


def load_token(folder: Path, make: Callable[[], str]) -> str:
    """The token of this data folder. `make` creates one if there is none, or none that is valid."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(folder)
        kept = _read(path)
        if kept:
            path.chmod(0o600)
            return kept
        return _write(path, make())
    except OSError as error:
        hint = "Check the folder's permissions, or choose another one with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None


def read_token(folder: Path) -> str:
    """The token of this data folder; empty if there is none that can be read."""
    with contextlib.suppress(OSError):
        return _read(folder / FILE_NAME)
    return ""


def _read(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        text = path.read_text("ascii").strip()
        if _TOKEN.fullmatch(text):
            return text
    return ""


def _make_private(folder: Path) -> None:
    """Make our own folder private. A shared folder (with the sticky bit) is left as it is."""
    found = folder.stat()
    if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not found.st_mode & stat.S_ISVTX:
        folder.chmod(0o700)


def _write(path: Path, token: str) -> str:
    """Write it atomically. If another process was faster, its token is returned."""
    fresh = path.with_name(f"{FILE_NAME}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    try:
        os.link(fresh, path)
    except FileExistsError:
        if kept := _read(path):
            return kept
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return token
