"""What the loop changed in a conversation so that it can be sent, told to whoever looks at it."""

from typing import Literal, TypeAlias

import msgspec

AmendmentKind: TypeAlias = Literal[
    "orphan_result", "missing_result", "id", "part", "call_left_out", "reply_left_out", "tool_choice"
]


class Amendment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: of what kind, to what, and why. `pointer` is the place in the document that it was read from."""

    kind: AmendmentKind
    what: str
    why: str
    pointer: str = ""
