"""Tools that do nothing: what a call brings is written in the script."""

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition
from sightline.agent.tools.tools import Progress
from sightline.testing.script import Script, ScriptedResult


class ScriptedTools:
    """Those of a script's tools that nobody else has."""

    def __init__(self, script: Script, real: frozenset[str] = frozenset()) -> None:
        self._script = script
        self.definitions: tuple[Definition, ...] = tuple(
            each.definition for each in script.tools if each.name not in real
        )

    def __str__(self) -> str:
        return "the script"

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """The result that stands at the place of the call in its round."""
        number, _, place = call.key.partition(".")
        results = self._script.rounds[int(number) - 1].results
        if int(place) > len(results):
            return text_outcome(f"The script has no result for call {place} of round {number}.", is_error=True)
        told = results[int(place) - 1]
        return (
            text_outcome(told.text, is_error=told.is_error) if isinstance(told, ScriptedResult) else text_outcome(told)
        )

    async def close(self) -> None:
        """Nothing is open."""
