from sightline.evals.core.graders.finding import DEFAULT_THRESHOLD, Grading, GradingSubject
from sightline.evals.core.result import CaseObservation


def test_what_is_graded_are_the_words_of_the_answer() -> None:
    assert GradingSubject(CaseObservation(text="four"), Grading()).text == "four"


def test_a_case_that_says_nothing_passes_from_four_fifths_on() -> None:
    assert Grading().threshold == DEFAULT_THRESHOLD == 0.8
