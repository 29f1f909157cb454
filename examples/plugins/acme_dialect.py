"""A dialect: Chat Completions at another path, with a key header of its own and a field that every request must have.

    [plugins]
    use = ["acme_dialect.py"]

    [providers.acme]
    dialect = "acme-chat"
    base_url = "http://127.0.0.1:9000"
    key_env = "ACME_API_KEY"

A dialect that resembles a built-in one is that one with other values where it differs. One that resembles none fills in
each field of `Dialect` that has no default.
"""

from dataclasses import replace

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.plugins import Plugin

CHAT = dialect("openai-chat")
assert CHAT.endpoint is not None  # providers serve it


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The request as Acme takes it. What is added is reported, so that the user sees it."""
    document = CHAT.write_request(request, target, report)
    assert isinstance(document, dict)
    if "acme_version" not in document:
        report.add("/acme_version", "acme_version", "Acme refuses requests without it")
    return {"acme_version": 2, **document}


DIALECT = replace(
    CHAT,
    name="acme-chat",
    write_request=write_request,
    endpoint=replace(CHAT.endpoint, path="/acme/generate", version="/v2", credential=("x-acme-key", "")),
    clients=replace(CHAT.clients, headers=frozenset({"x-acme-key"}), raw_paths=None),
)

PLUGIN = Plugin(name="acme-chat", dialects=(DIALECT,))
