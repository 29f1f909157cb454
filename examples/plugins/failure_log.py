"""A hook on exchange events: each failure becomes a line of a file, for whatever watches that file.

    [plugins]
    use = ["failure_log.py"]

The file is named by the variable FAILURE_LOG; without it, it is failures.log in the current folder.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from sightline.plugins import ExchangeEvent, Plugin


def log_failures(event: ExchangeEvent) -> None:
    """Append one line for each exchange that fails."""
    if event.kind != "failed":
        return
    at = datetime.fromtimestamp(event.at, UTC).isoformat(timespec="seconds")
    with Path(os.environ.get("FAILURE_LOG", "failures.log")).open("a", encoding="utf-8") as file:
        file.write(f"{at} {event.exchange} {event.fact['code']}: {event.fact['message']}\n")


PLUGIN = Plugin(name="failure-log", hooks=(log_failures,))
