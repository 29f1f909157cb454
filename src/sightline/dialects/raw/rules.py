"""What makes no sense as a raw request, whichever provider it will be sent to."""

from sightline.dialects.dialect import Problem
from sightline.dialects.validity import no_messages, pairing_problems
from sightline.model.request import Request


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    in_object = bool(request.messages) and request.messages[0].at.startswith("/messages/")
    return [
        *no_messages(request, "/messages" if in_object else ""),
        *pairing_problems(request, adjacent=True),
    ]
