"""An export format and an import format: one exchange a line, with its address, request and response.

[plugins]
use = ["url_list.py"]

sightline export --as url-list -o calls.txt
sightline import calls.txt
"""

import json
from typing import Any

from sightline.plugins import Plugin

_FIRST = b"# url-list 1\n"


def write_list(archive: dict[str, Any]) -> bytes:
    """The exchanges of an HTTP archive, one a line."""
    lines = [
        json.dumps(
            [
                entry["startedDateTime"],
                entry["request"]["method"],
                entry["request"]["url"],
                entry["request"].get("postData", {}).get("text", ""),
                entry["response"]["status"],
                entry["response"]["content"].get("text", ""),
            ]
        )
        for entry in archive["log"]["entries"]
    ]
    return _FIRST + "".join(f"{line}\n" for line in lines).encode()


def read_list(data: bytes) -> dict[str, Any] | None:
    """The HTTP archive of such a file; None for any other file."""
    if not data.startswith(_FIRST):
        return None
    return {"log": {"version": "1.2", "entries": [_entry(*json.loads(line)) for line in data.splitlines()[1:]]}}


def _entry(began: str, method: str, url: str, sent: str, status: int, came: str) -> dict[str, Any]:
    kind = "text/event-stream" if came.startswith(("data:", "event:")) else "application/json"
    headers = [{"name": "content-type", "value": kind}]
    return {
        "startedDateTime": began,
        "time": 0,
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": "content-type", "value": "application/json"}],
            "postData": {"mimeType": "application/json", "text": sent},
        },
        "response": {"status": status, "headers": headers, "content": {"mimeType": kind, "text": came}},
    }


PLUGIN = Plugin(name="url-list", exporters={"url-list": write_list}, importers={"url-list": read_list})
