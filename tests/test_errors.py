import pytest

from sightline.errors import RETRYABLE, SIDES, Code, Fault


def test_every_code_is_on_somebodys_side() -> None:
    assert set(SIDES) == set(Code)


def test_a_fault_says_what_happened_and_what_to_do() -> None:
    fault = Fault(Code.RATE_LIMITED, "slow down", hint="Wait.", retry_after=2.5, status=429)
    assert str(fault) == "slow down"
    assert (fault.side, fault.is_retryable, fault.retry_after) == ("provider", True, 2.5)
    assert repr(fault) == "Fault('rate_limited', 'slow down')"


@pytest.mark.parametrize("code", [Code.QUOTA, Code.CONTEXT_OVERFLOW, Code.AUTH, Code.INVALID_REQUEST])
def test_what_waiting_cannot_help_is_not_retryable(code: Code) -> None:
    assert code not in RETRYABLE
    assert not Fault(code, "no").is_retryable


def test_faults_are_equal_when_they_say_the_same() -> None:
    assert Fault(Code.AUTH, "no") == Fault(Code.AUTH, "no")
    assert Fault(Code.AUTH, "no") != Fault(Code.AUTH, "no", status=401)
    assert Fault(Code.AUTH, "no") != "no"
    assert len({Fault(Code.AUTH, "no")}) == 1
