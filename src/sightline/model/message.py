"""One item of a conversation: a role and its parts."""

from typing import Literal

from sightline.model.json import Value
from sightline.model.parts import Part

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Message(Value, frozen=True, tag=False):
    """One message, or one item where the wire has items. Readers make one per wire item and never regroup.

    `bare` says that the content was one string where a list of parts could stand; `id` is the wire's own item id.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    bare: bool = False
