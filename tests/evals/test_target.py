import pytest

from sightline.errors import Fault
from sightline.evals.target import CommandSpec, TargetSpec

RUNS = CommandSpec(command="agent {PROMPT}")


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (TargetSpec(name="t", model="acme/m"), "model"),
        (TargetSpec(name="t", model="acme/m", replay=""), "replay"),
        (TargetSpec(name="t", mock=""), "mock"),
        (TargetSpec(name="t", cli=RUNS), "cli"),
    ],
)
def test_a_target_says_who_answers(spec: TargetSpec, kind: str) -> None:
    spec.check()
    assert spec.kind == kind


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (TargetSpec(name="t", mock="a", replay=""), "names mock and replay"),
        (TargetSpec(name="t", mock="a", toolsets=("x",)), "has toolsets and mock"),
        (TargetSpec(name="t", cli=CommandSpec()), "has not one command to run"),
        (TargetSpec(name="t", cli=CommandSpec(command="x", template="codex")), "has not one command to run"),
        (TargetSpec(name="t", concurrency=0), "has concurrency = 0"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(spec: TargetSpec, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        spec.check()
    assert caught.value.hint
