"""The grader that looks whether a skill was used: it was called by name, or its files were read."""

from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, finding_without_score, of_one
from sightline.evals.core.graders.limits import UNTRACED
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.observation import ToolUse


def skill_trigger(fields: Fields) -> Run:
    """The skill was used, or was not where it should not be."""
    name = fields.text("skill", needed=True, why="Give the name of the skill.")
    wanted = fields.flag("should_trigger", otherwise=True)
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        if not subject.observation.is_traced:
            return finding_without_score(UNTRACED)
        uses = subject.observation.tools
        seen = next((words for use in uses if (words := _evidence(use, name))), "")
        text = f'skill "{name}" is {"" if wanted else "not "}used'
        return of_one(text, held=bool(seen) is wanted, evidence=seen or f"not in {len(uses)} tool calls")

    return at_once(look)


def _evidence(use: ToolUse, name: str) -> str:
    arguments = use.arguments if isinstance(use.arguments, dict) else {}
    folder = f"skills/{name}/"
    if use.name.lower() == "skill" and name in str(arguments.get("skill", "")):
        return f"{use.name} was called with {arguments['skill']}"
    path = str(arguments.get("file_path", arguments.get("path", "")))
    if use.name.lower() == "read" and folder in path:
        return f"{use.name} was called with {path}"
    return f"{use.name} answered with {folder}" if folder in use.result else ""
