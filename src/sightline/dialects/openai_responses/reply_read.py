"""Reading a whole Responses reply, item by item, into the events that its stream would have been."""

from sightline.dialects.fields import as_object, opt_str, wrong
from sightline.dialects.openai_responses.errors import read_error
from sightline.dialects.openai_responses.snapshots import SnapshotReader
from sightline.model.events import Ended, Failed, Started, StreamEvent
from sightline.model.json import Json, JsonObject


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a whole reply, or of an error body in its place."""
    body = as_object(document, "")
    if "output" not in body and body.get("object") != "response" and body.get("error") is not None:
        return [Failed(read_error(0, body, {})), Ended()]
    if type(body.get("output")) is not list:
        raise wrong(body.get("output"), "/output", "a list")
    hearing = SnapshotReader()
    return [*read_identity(body, ""), *hearing.outcome(body, ""), Ended()]


def read_identity(response: JsonObject, at: str) -> list[StreamEvent]:
    """The identity of a reply."""
    keys = {"id": "id", "model": "model", "created": "created_at"}
    created = response.get("created_at")
    return [
        Started(
            opt_str(response, "id", at),
            opt_str(response, "model", at),
            int(created) if isinstance(created, (int, float)) else None,
            {name: f"{at}/{key}" for name, key in keys.items() if response.get(key) is not None},
            # A server that says nothing of it may keep nothing, whatever OpenAI's own default is.
            opt_str(response, "id", at) if response.get("store") is True else None,
        )
    ]
