from sightline.errors import Code
from sightline.store.logbook import overtaken


def test_who_was_overtaken_is_told_which_log_and_what_to_do() -> None:
    fault = overtaken("run:r_1")
    assert (fault.code, fault.status) == (Code.USAGE, 409)
    assert "'run:r_1' was changed by another process" in fault.message
    assert "Read" in fault.hint
