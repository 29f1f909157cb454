from sightline.evals.core.graders.criterion import Criterion
from sightline.evals.core.graders.subject import Grading, Subject
from sightline.evals.core.graders.template import NAMES, filled, material, unknown_variables, variables_of
from sightline.evals.core.observation import Observation, ToolUse
from tests.grading_stage import message

SUBJECT = Subject(
    Observation(
        text=" four {{ criteria }} ", tools=(ToolUse(name="add", result="4"),), messages=(message("assistant", "x"),)
    ),
    Grading(question="two and two?", metadata={"k": 1}, file_changes="+1"),
)
VALUES = material(SUBJECT, " be right ", "4", (Criterion("a", "is right"),))


def test_every_variable_of_a_prompt_is_filled() -> None:
    for name in NAMES:
        assert filled(f"{{{{ {name} }}}}", VALUES) != f"{{{{ {name} }}}}"
    assert filled("{{criteria}} {{ metadata_json }} {{ rubrics_json }}", VALUES) == (
        'be right {"k":1} [{"id":"a","outcome":"is right","weight":1.0}]'
    )


def test_what_others_wrote_is_quoted_and_is_not_filled_itself() -> None:
    assert filled("Look: {{ output }}", VALUES) == "Look: <block-1 output>\nfour {{ criteria }}\n</block-1 output>"
    assert filled("{{ answer }}", VALUES) == filled("{{ output }}", VALUES)


def test_what_is_empty_leaves_nothing_but_an_empty_answer_is_shown() -> None:
    values = material(Subject(Observation(), Grading()), "", "", ())
    assert filled("[{{ input }}{{ metadata }}{{ metadata_json }}{{ rubrics }}{{ rubrics_json }}]", values) == "[]"
    assert filled("{{ output }}", values) == "<block-1 output>\n\n</block-1 output>"


def test_a_name_that_is_not_known_stays() -> None:
    assert filled("{{ nobody }}", VALUES) == "{{ nobody }}"
    assert (variables_of("{{ output }} {{ nobody }}"), unknown_variables("{{ output }} {{ nobody }}")) == (
        ["output"], ["nobody"],
    )  # fmt: skip


def test_the_question_is_told_by_its_messages_where_there_is_no_flat_form() -> None:
    subject = Subject(Observation(), Grading(messages=(message("user", "two?"),)))
    assert material(subject, "", "", ()).quoted["input"] == "user: two?"
