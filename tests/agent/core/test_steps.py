from sightline.agent.core.steps import AskModel, RunnableCall, Used, batches, unfit
from sightline.errors import Code
from tests.loop_stage import question


def call(key: str, *, is_parallel: bool = False) -> RunnableCall:
    return RunnableCall(key=key, id=key, name="f", arguments={}, is_parallel=is_parallel)


def test_calls_that_may_run_beside_each_other_are_batched_and_the_order_stays() -> None:
    a, b, c, d, e = (call(key, is_parallel=key in "abe") for key in "abcde")
    assert batches((a, b, c, d, e)) == ((a, b), (c,), (d,), (e,))
    assert batches(()) == ()


def test_a_wrong_answer_names_both() -> None:
    fault = unfit(AskModel(1, question()), Used())
    assert (fault.code, fault.message) == (Code.USAGE, "AskModel was answered by Used")
    assert fault.hint
