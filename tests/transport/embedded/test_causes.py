from typing import get_args

import pytest

from sightline.errors import Code
from sightline.transport.embedded.causes import TOLD, Cause, cause_of_exit, unavailable


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_cause_says_what_to_do(cause: Cause) -> None:
    fault = unavailable(cause, "as the machine says")
    assert fault.code is Code.LOCAL_UNAVAILABLE
    assert fault.message == f"the embedded model cannot run: {TOLD[cause].message} (as the machine says)"
    assert fault.hint


def test_without_a_detail_there_are_no_empty_brackets() -> None:
    assert unavailable("no_engine").message == "the embedded model cannot run: its engine is not installed"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        pytest.param(-4, "no_avx2", id="illegal instruction"),
        pytest.param(0xC000001D, "no_avx2", id="illegal instruction on Windows"),
        pytest.param(-9, "out_of_memory", id="killed"),
        pytest.param(-11, "crashed", id="segmentation fault"),
        pytest.param(1, "crashed", id="an exception"),
        pytest.param(0, "crashed", id="no reason at all"),
    ],
)
def test_an_exit_tells_its_cause(code: int, cause: Cause) -> None:
    assert cause_of_exit(code) == cause
