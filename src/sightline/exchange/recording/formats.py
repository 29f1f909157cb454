"""The formats in which recorded exchanges are written.

They are separate from the code that writes them, because the help of the command line lists them: it is built at every
start, and importing `archives` takes a third of a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ShareFormat:
    """A format. `label` and `about` are for the page, which offers to copy the format if `is_text`; `suffix` and
    `media_type` are those of its files. A plug-in's format is not `is_built_in`."""

    name: str
    label: str
    about: str
    suffix: str
    media_type: str
    is_text: bool = False
    is_built_in: bool = True


_TEXT = "; charset=utf-8"
_FORMATS = (
    ShareFormat(
        "html", "HTML", "One page that anyone can open, offline and without scripts.", "html", f"text/html{_TEXT}"
    ),
    ShareFormat(
        "markdown", "Markdown", "Text for issues, mails and notes.", "md", f"text/markdown{_TEXT}", is_text=True
    ),
    ShareFormat("har", "HAR", "An HTTP archive for browsers and other tools.", "har", "application/json"),
    ShareFormat(
        "curl",
        "curl",
        "Commands that send the requests again, with keys as variables.",
        "sh",
        f"text/x-shellscript{_TEXT}",
        is_text=True,
    ),
    ShareFormat(
        "python", "Python", "Scripts that send the requests again.", "py", f"text/x-python{_TEXT}", is_text=True
    ),
    ShareFormat(
        "jsonl", "JSON lines", "An archive that Sightline reads back unchanged.", "jsonl", "application/x-ndjson"
    ),
)
FORMS: Final[Mapping[str, ShareFormat]] = {each.name: each for each in _FORMATS}
"""The formats by name, in the order in which they are offered."""


def plugin_format(name: str) -> ShareFormat:
    """The format of a plug-in."""
    about, media_type = "A format of a plug-in.", "application/octet-stream"
    return ShareFormat(name, name, about, name, media_type, is_built_in=False)
