import asyncio

from sightline.agent.core.output import Outcome, said
from sightline.agent.core.steps import Call
from sightline.testing.script import Result, Round, Script, ToolLine
from sightline.testing.scripted_tools import ScriptedTools

SCRIPT = Script(
    (Round(results=("one", Result("no", is_error=True))), Round(results=("three",))),
    tools=(ToolLine("edit", "Edit.", {"type": "object"}), ToolLine("look")),
)


def used(key: str) -> Outcome:
    tools = ScriptedTools(SCRIPT)
    call = Call(key=key, id="a", name="edit", arguments={})

    async def story() -> Outcome:
        outcome = await tools.use(call, lambda words: None)
        await tools.close()
        return outcome

    return asyncio.run(story())


def test_results_stand_at_the_place_of_their_call() -> None:
    assert [used("1.1"), used("1.2"), used("2.1")] == [said("one"), said("no", is_error=True), said("three")]
    assert used("2.2") == said("The script has no result for call 2 of round 2.", is_error=True)


def test_what_is_real_is_not_played() -> None:
    assert [each.name for each in ScriptedTools(SCRIPT).definitions] == ["edit", "look"]
    assert [each.name for each in ScriptedTools(SCRIPT, frozenset({"edit"})).definitions] == ["look"]
    assert str(ScriptedTools(SCRIPT)) == "the script"
