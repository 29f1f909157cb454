"""What clients of OpenAI's APIs, and of APIs without rules of their own, expect of a server beyond replies."""

from collections.abc import Mapping, Sequence

from sightline.dialects.dialect import ListedModel
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

KEEP_ALIVE_COMMENT = b": held\n\n"
RESEND_HINT = "Send the whole conversation with each request."


def comment_keep_alive(_headers: Mapping[str, str]) -> bytes:
    """A comment, which is what the standard of server-sent events has for it."""
    return KEEP_ALIVE_COMMENT


def show_model(model: ListedModel) -> JsonObject:
    """One entry of the list of models."""
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}


def list_models(models: Sequence[ListedModel]) -> JsonObject:
    """The list of models."""
    return {"object": "list", "data": [show_model(model) for model in models]}


def state_fault(field: str) -> Fault:
    """The fault of a request that refers to a conversation which another provider keeps. The code is the one upon
    which clients of the Responses API send their whole history again."""
    return Fault(
        Code.INVALID_REQUEST,
        f"{field} is not known to the provider of this request; send the whole conversation",
        hint=RESEND_HINT,
        pointer=f"/{field}",
        details={"param": field, "code": "previous_response_not_found"},
    )
