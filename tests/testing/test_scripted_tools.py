import asyncio

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.testing.script import Script, ScriptedResult, ScriptedRound, ToolLine
from sightline.testing.scripted_tools import ScriptedTools

SCRIPT = Script(
    (ScriptedRound(results=("one", ScriptedResult("no", is_error=True))), ScriptedRound(results=("three",))),
    tools=(ToolLine("edit", "Edit.", {"type": "object"}), ToolLine("look")),
)


def used(key: str) -> ToolOutcome:
    tools = ScriptedTools(SCRIPT)
    call = RunnableCall(key=key, id="a", name="edit", arguments={})

    async def story() -> ToolOutcome:
        outcome = await tools.use(call, lambda words: None)
        await tools.close()
        return outcome

    return asyncio.run(story())


def test_results_stand_at_the_place_of_their_call() -> None:
    assert [used("1.1"), used("1.2"), used("2.1")] == [
        text_outcome("one"),
        text_outcome("no", is_error=True),
        text_outcome("three"),
    ]
    assert used("2.2") == text_outcome("The script has no result for call 2 of round 2.", is_error=True)


def test_what_is_real_is_not_played() -> None:
    assert [each.name for each in ScriptedTools(SCRIPT).definitions] == ["edit", "look"]
    assert [each.name for each in ScriptedTools(SCRIPT, frozenset({"edit"})).definitions] == ["look"]
    assert str(ScriptedTools(SCRIPT)) == "the script"
