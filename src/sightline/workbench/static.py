"""The page and its files, as they stand in the package. Their address holds a hash of them all, so that a browser may
keep them for good and never shows yesterday's."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sightline.web import replies
from sightline.web.asgi import Headers, WebResponse

FOLDER: Final = Path(__file__).resolve().parents[1] / "ui"
PREFIX: Final = b"/ui/"
PAGE: Final = "index.html"
TYPES: Final[Mapping[str, bytes]] = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".LICENSE": b"text/plain; charset=utf-8",
}
"""What is given out, by the ending of its name; a file of another kind is not."""

# No script and no style may stand in the page itself, and no string may become markup.
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    b"connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS: Final[Headers] = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY),
    *replies.GUARDED,
]
_FOR_GOOD: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_HASH_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class _Tree:
    """The files at one moment. `stamp` changes when any of them does."""

    stamp: tuple[tuple[str, int, int], ...]
    hash: str
    files: Mapping[str, bytes]


class Static:
    """Reads the files once, and again only when one of them has changed on the disk."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._tree: _Tree | None = None

    def page(self) -> WebResponse:
        """The page, whose links name the files as they are now."""
        tree = self._current()
        html = tree.files[PAGE].replace(b"{ui}", PREFIX + tree.hash.encode())
        return WebResponse(200, html, list(_PAGE_HEADERS))

    def nothing(self) -> WebResponse:
        """For whoever is not known: a blank page."""
        html = b'<!doctype html><html lang="en"><title>Sightline</title><link rel="icon" href="data:,">'
        return WebResponse(401, html, list(_PAGE_HEADERS))

    def file(self, path: bytes) -> WebResponse:
        """One file by its address, exactly as that was written; there is no other way to name it."""
        named, _, name = path.removeprefix(PREFIX).decode("latin-1").partition("/")
        tree = self._tree or self._current()
        media_type = TYPES.get(Path(name).suffix)
        body = tree.files.get(name)
        if named != tree.hash or media_type is None or body is None:
            return replies.failure(replies.not_found(f"file {name[:200]!r} of the page; load the page again"))
        kept = [header for header in replies.GUARDED if header[0] != b"cache-control"]
        return WebResponse(200, body, [(b"content-type", media_type), _FOR_GOOD, *kept])

    def _current(self) -> _Tree:
        paths = sorted(path for path in self._folder.rglob("*") if path.suffix in TYPES or path.name == PAGE)
        stamp = tuple((str(path), (told := path.stat()).st_mtime_ns, told.st_size) for path in paths)
        if self._tree is None or self._tree.stamp != stamp:
            files = {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in paths}
            self._tree = _Tree(stamp, _hash(files), files)
        return self._tree


def _hash(files: Mapping[str, bytes]) -> str:
    state = hashlib.sha256()
    for name, body in files.items():
        state.update(f"{name}\0{len(body)}\0".encode())
        state.update(body)
    return state.hexdigest()[:_HASH_LENGTH]
