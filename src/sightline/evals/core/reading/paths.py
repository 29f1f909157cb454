"""Where a file that a suite names may lie: only below the folder, and never by a path of this machine."""

import re
from collections.abc import Iterator

from sightline.catalog.problem import quote_word

_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
FILE = "file://"


def refusal_of(path: str, *, from_top: bool = False) -> tuple[str, str] | None:
    """Why a path cannot be used, and what to write instead; None if it can.

    `from_top`: a path that begins with a slash is one of the repository, as AgentV's suites write it.
    """
    if not path.strip():
        return "the path is empty", "Name a file."
    if "\0" in path or any(not letter.isprintable() for letter in path):
        return f"the path {quote_word(path)} has characters in it that no file name should have", "Rename the file."
    if path.startswith("~" if from_top else ("/", "~")) or _DRIVE.match(path):
        bare = quote_word(path.lstrip("/~").rpartition("/")[2] or path)
        hint = f"Write it relative to the suite, such as {bare}."
        return f"the path {quote_word(path)} is absolute: it would be another on every machine", hint
    if "\\" in path:
        return f"the path {quote_word(path)} has backslashes in it", f"Write {quote_word(path.replace(chr(92), '/'))}."
    if _SCHEME.match(path):
        return f"{quote_word(path)} is a URL, not a file", "Name a file; only images can be given by URL."
    return None


def is_link(path: str) -> bool:
    """Whether a picture is named by a URL that a provider can fetch or read."""
    return path.startswith(("http://", "https://", "data:"))


def folder_of(file: str) -> str:
    """The folder of a file; empty for the topmost."""
    return file.rpartition("/")[0]


def display_path(path: str) -> str:
    """The path as it is shown to a model: as the suite names it, without what says `here`."""
    return "/".join(step for step in path.split("/") if step not in (".", ""))


def join_path(folder: str, path: str) -> str | None:
    """A path from a folder, with `..` followed; None where that leads out of the topmost folder."""
    steps = folder.split("/") if folder else []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in (".", ""):
            steps.append(step)
    return "/".join(steps)


def candidates(file: str, path: str) -> Iterator[str]:
    """Where a file may lie that `file` names: beside it, then in each folder above, up to the topmost."""
    folder = folder_of(file)
    while True:
        found = join_path(folder, path)
        if found:
            yield found
        if not folder:
            return
        folder = folder_of(folder)
