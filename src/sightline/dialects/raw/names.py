"""Words and numbers of the raw wire that more than one file here needs."""

from collections.abc import Mapping

from sightline.model.message import Role

NAME = "raw"

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
"""The roles by their number."""

ROLE_NUMBERS: Mapping[Role, int] = {"system": 0, "developer": 0, "user": 1, "assistant": 2, "tool": 3}

IMAGE, TEXT, OPAQUE, CACHE = 0, 1, 2, 3
"""The kinds of parts by their number."""

DETAILS = frozenset({"low", "high"})
"""How closely the model can be asked to look at a picture."""

SIGHTLINE = "sightline"
"""Marks what we put beside the schema because it has no field for it: an opaque part, or a member of a known one."""

OPTIONS = "requestOptions"

FIRST_CALL = 1 << 20
"""A message holds its calls behind its content, so a call's number comes behind that of any other part."""

MOST_CHOICES = 1024
"""A choice's number is below this, so that a broken one cannot ask for endless empty choices."""

MARKER = "statefulMarker"
"""Names what the provider keeps of the conversation, in a reply and in a delta."""
