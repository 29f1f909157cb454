from pathlib import Path

import pytest

from sightline.errors import LABELS, RETRYABLE, UNSTATED, Code, Fault, Numbers

DOCS = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"


def test_a_fault_says_what_happened_and_what_to_do() -> None:
    fault = Fault(Code.RATE_LIMITED, "slow down", hint="Wait.", retry_after=2.5, status=429)
    assert str(fault) == "slow down"
    assert (fault.is_retryable, fault.retry_after) == (True, 2.5)
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


@pytest.mark.parametrize(
    ("code", "label"),
    [
        (Code.AUTH, "auth"),
        (Code.PERMISSION, "auth"),
        (Code.RATE_LIMITED, "quota"),
        (Code.CONTEXT_OVERFLOW, "quota"),
        (Code.NETWORK, "net"),
        (Code.MODEL_UNKNOWN, "model"),
        (Code.INVALID_REQUEST, "unknown"),
        (Code.CONFIG, "unknown"),
    ],
)
def test_a_fault_has_a_coarse_label_beside_its_code(code: Code, label: str) -> None:
    assert Fault(code, "no").label == label
    assert set(LABELS) <= set(Code)


def test_numbers_of_a_fault_are_unstated_by_default() -> None:
    assert Fault(Code.CONTEXT_OVERFLOW, "too long").numbers == UNSTATED == Numbers(None, None, None)
    stated = Fault(Code.CONTEXT_OVERFLOW, "too long", numbers=Numbers(5, 9, 4))
    assert stated != Fault(Code.CONTEXT_OVERFLOW, "too long")


@pytest.mark.parametrize("code", Code)
def test_the_reference_has_a_row_for_every_code(code: Code) -> None:
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.startswith(f"| `{code.value}` |")]
    assert len(rows) == 1
    cells = [cell.strip() for cell in rows[0]]
    assert cells[3] == f"`{Fault(code, '').label}`"
    assert cells[4] in ("caller", "provider", "network", "person")
    assert cells[5] == ("yes" if code in RETRYABLE else "no")
