"""A dialect for Claude on Google Vertex AI: Anthropic's API with the model in the path and a version in the body.

[plugins]
use = ["vertex_claude.py"]

[providers.vertex-claude]
dialect = "vertex-claude"
base_url = "https://us-east5-aiplatform.googleapis.com/v1/projects/PROJECT/locations/us-east5/publishers/anthropic"
version = ""
sign = "google-service-account"
"""

from dataclasses import replace

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.plugins import Plugin

MESSAGES = dialect("anthropic")
assert MESSAGES.endpoint is not None  # providers serve it
VERSION = "vertex-2023-10-16"


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The request without its model, which is in the path, and with the version that Vertex asks for."""
    document = MESSAGES.write_request(request, target, report)
    assert isinstance(document, dict)
    if "anthropic_version" not in document:
        report.add("/anthropic_version", "anthropic_version", "Vertex refuses requests without it")
    return {"anthropic_version": VERSION, **{name: value for name, value in document.items() if name != "model"}}


DIALECT = replace(
    MESSAGES,
    name="vertex-claude",
    write_request=write_request,
    model_in_path=True,
    endpoint=replace(
        MESSAGES.endpoint,
        path="/models/{model}:rawPredict",
        stream_path="/models/{model}:streamRawPredict",
        counting=None,
    ),
    clients=replace(MESSAGES.clients, headers=frozenset(), key_parameter="", versions=None, raw_paths=None),
)

PLUGIN = Plugin(name="vertex-claude", dialects=(DIALECT,))
