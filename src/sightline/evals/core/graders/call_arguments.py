"""When the arguments of a call are those that were expected."""

from sightline.evals.core.graders.json_equality import Absent, alike, value_at
from sightline.model.json import Json, JsonObject

MODES = ("exact", "ignore", "subset", "superset")


def fits(expected: JsonObject | None, actual: Json, mode: str | tuple[str, ...]) -> bool:
    """Whether arguments fit; None expects nothing of them.

    `superset`: all that is expected is there. `subset`: nothing is there that is not expected. A tuple names the only
    fields that are looked at, of those that are expected.
    """
    if expected is None or mode == "ignore":
        return True
    if not isinstance(actual, dict):
        return False
    if isinstance(mode, tuple):
        pairs = [(value_at(expected, path), value_at(actual, path)) for path in mode]
        return all(_same(wanted, found) for wanted, found in pairs if not isinstance(wanted, Absent))
    if mode == "superset":
        return all(key in actual and alike(value, actual[key]) for key, value in expected.items())
    if mode == "subset":
        return all(key in expected and alike(value, expected[key]) for key, value in actual.items())
    return alike(expected, actual)


def _same(wanted: Json, found: Json | Absent) -> bool:
    return not isinstance(found, Absent) and alike(wanted, found)
