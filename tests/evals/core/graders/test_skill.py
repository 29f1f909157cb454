import pytest

from sightline.evals.core.graders.limits import UNTRACED
from sightline.evals.core.result import CaseObservation, ToolUse
from tests.grading_stage import seen, spec, told


@pytest.mark.parametrize(
    ("use", "is_used"),
    [
        (ToolUse(name="Skill", arguments={"skill": "office:pdf"}), True),
        (ToolUse(name="skill", arguments={"skill": "docx"}), False),
        (ToolUse(name="Read", arguments={"file_path": "/skills/pdf/SKILL.md"}), True),
        (ToolUse(name="read", arguments={"path": "skills/pdf/x"}), True),
        (ToolUse(name="read", arguments={"path": "skills/docx/x"}), False),
        (ToolUse(name="Bash", arguments="ls", result="skills/pdf/SKILL.md"), True),
        (ToolUse(name="Bash", arguments={"path": "skills/pdf/x"}), False),
    ],
)
def test_a_skill_is_used_by_its_name_or_its_files(use: ToolUse, is_used: bool) -> None:
    observation = CaseObservation(tools=(ToolUse(name="other"), use))
    assert seen(spec("skill-trigger", skill="pdf"), observation).score.score == float(is_used)
    assert seen(spec("skill-trigger", skill="pdf", should_trigger=False), observation).score.score == float(not is_used)


def test_what_was_looked_through_is_told() -> None:
    (check,) = seen(spec("skill-trigger", skill="pdf"), CaseObservation()).score.checks
    assert (check.text, check.evidence) == ('skill "pdf" is used', "not in 0 tool calls")


def test_a_skill_has_to_be_named() -> None:
    assert told(spec("skill-trigger")) == [("", 'the grader skill-trigger lacks the key "skill"')]


def test_a_program_that_tells_only_its_last_words_may_have_used_it() -> None:
    for wanted in (True, False):
        score = seen(spec("skill-trigger", skill="pdf", should_trigger=wanted), CaseObservation(is_traced=False)).score
        assert (score.verdict, score.reason) == ("not_graded", UNTRACED)
