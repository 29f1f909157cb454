"""Where a request goes: a rule of the user's configuration, the first that matches."""

from typing import Literal

import msgspec

from sightline.catalog.provider import DialectName, Retries


class Route(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, rename={"as_": "as"}
):
    """`model` is a glob over the model that was asked for, `dialect` narrows it to requests that arrive in that one.

    `as` is the name to send instead; `system` says where system messages go; `strict` refuses a loss;
    `retries` is how often its requests are sent again, whoever sends them.
    """

    model: str = "*"
    dialect: DialectName | None = None
    provider: str
    as_: str = ""
    system: Literal["in_place", "merge_leading", "merge_all"] = "in_place"
    strict: bool = False
    retries: Retries | None = None
