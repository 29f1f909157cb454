from sightline.evals.core.graders.finding import Grading, GradingSubject
from sightline.evals.core.graders.prompt import NAMES, fill_template, material, unknown_variables, variables_of
from sightline.evals.core.graders.rubric import Criterion
from sightline.evals.core.result import CaseObservation, ToolUse
from tests.grading_stage import message

SUBJECT = GradingSubject(
    CaseObservation(
        text=" four {{ criteria }} ", tools=(ToolUse(name="add", result="4"),), messages=(message("assistant", "x"),)
    ),
    Grading(question="two and two?", metadata={"k": 1}, file_changes="+1"),
)
VALUES = material(SUBJECT, " be right ", "4", (Criterion("a", "is right"),))


def test_every_variable_of_a_prompt_is_filled() -> None:
    for name in NAMES:
        assert fill_template(f"{{{{ {name} }}}}", VALUES) != f"{{{{ {name} }}}}"
    assert fill_template("{{criteria}} {{ metadata_json }} {{ rubrics_json }}", VALUES) == (
        'be right {"k":1} [{"id":"a","outcome":"is right","weight":1.0}]'
    )


def test_what_others_wrote_is_quoted_and_is_not_filled_itself() -> None:
    assert (
        fill_template("Look: {{ output }}", VALUES) == "Look: <block-1 output>\nfour {{ criteria }}\n</block-1 output>"
    )
    assert fill_template("{{ answer }}", VALUES) == fill_template("{{ output }}", VALUES)


def test_what_is_empty_leaves_nothing_but_an_empty_answer_is_shown() -> None:
    values = material(GradingSubject(CaseObservation(), Grading()), "", "", ())
    assert (
        fill_template("[{{ input }}{{ metadata }}{{ metadata_json }}{{ rubrics }}{{ rubrics_json }}]", values) == "[]"
    )
    assert fill_template("{{ output }}", values) == "<block-1 output>\n\n</block-1 output>"


def test_a_name_that_is_not_known_stays() -> None:
    assert fill_template("{{ nobody }}", VALUES) == "{{ nobody }}"
    assert (variables_of("{{ output }} {{ nobody }}"), unknown_variables("{{ output }} {{ nobody }}")) == (
        ["output"], ["nobody"],
    )  # fmt: skip


def test_the_question_is_told_by_its_messages_where_there_is_no_flat_form() -> None:
    subject = GradingSubject(CaseObservation(), Grading(messages=(message("user", "two?"),)))
    assert material(subject, "", "", ()).quoted["input"] == "user: two?"
