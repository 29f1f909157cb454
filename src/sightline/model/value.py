"""What every canonical value shares: it is frozen, and if it was read from a wire document it knows its place."""

import msgspec

from sightline.model.json import Json


class Value(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"
):
    """A value that may stand somewhere in a wire document.

    `at` is the JSON pointer of that place, empty for a value that was composed here. `extras` are the fields that
    stood beside the ones we model; they are written back unchanged to the dialect that they came from.
    """

    at: str = ""
    extras: dict[str, Json] = {}
