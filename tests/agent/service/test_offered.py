import msgspec

from sightline.agent.core.tool import Definition, Toolbox
from sightline.agent.service.driver import ToolChanges
from tests.loop_stage import COUNT, EDIT, OFF, SHELL, TOOLBOX

FRESH = Definition(name="fresh")
COUNT_ANEW = msgspec.structs.replace(COUNT, schema={"type": "object"})


def test_tools_that_stay_as_they_are_are_not_spoken_of() -> None:
    offered = ToolChanges(TOOLBOX, (EDIT, COUNT, SHELL))
    assert offered.changes((EDIT, COUNT, SHELL)) == ""
    assert offered.changes((SHELL, COUNT, EDIT)) == ""


def test_what_goes_changes_and_comes_is_told_once() -> None:
    offered = ToolChanges(TOOLBOX, (EDIT, COUNT, SHELL))
    now = (COUNT_ANEW, SHELL, FRESH)
    words = "edit_file gone; count changed; fresh new, for the next run"
    assert offered.changes(now) == f"the tools are not as they were: {words}"
    assert offered.changes(now) == ""
    assert offered.changes((EDIT, *now)) == "the tools are not as they were: edit_file there again"


def test_a_run_that_is_taken_up_is_compared_with_what_it_was_told() -> None:
    now = (COUNT_ANEW, FRESH)
    words = "edit_file, shell gone; count changed"
    assert ToolChanges(TOOLBOX, now).changes(now) == f"the tools are not as they were: {words}"


def test_a_run_with_some_of_the_tools_does_not_miss_the_others() -> None:
    offered = ToolChanges(Toolbox((COUNT, OFF)), (EDIT, COUNT))
    assert offered.changes((EDIT, COUNT)) == ""
    assert offered.changes((COUNT,)) == ""
