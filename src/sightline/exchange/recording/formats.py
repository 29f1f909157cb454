"""The formats that recorded exchanges are written in.

They are apart from what writes them, because the help of the command line names them: it is built at every start, and
importing `archives` takes a third of a second.
"""

from collections.abc import Mapping
from typing import Final

FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "jsonl": ("jsonl", "application/x-ndjson"),
    "har": ("har", "application/json"),
    "html": ("html", "text/html; charset=utf-8"),
    "markdown": ("md", "text/markdown; charset=utf-8"),
    "curl": ("sh", "text/x-shellscript; charset=utf-8"),
    "python": ("py", "text/x-python; charset=utf-8"),
}
"""The suffix and the media type of a file in each format; the first is the usual one."""
