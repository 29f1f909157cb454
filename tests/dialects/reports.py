"""What a report, a fault or a document says, briefly, for the tests of all dialects."""

from collections.abc import Callable
from typing import Any

import pytest

from sightline.errors import Fault
from sightline.model.report import Report


def losses(report: Report) -> list[tuple[str, str]]:
    """The place and the severity of each loss."""
    return [(loss.pointer, loss.severity) for loss in report.losses]


def named_losses(report: Report) -> list[tuple[str, str, str]]:
    """The same with what was lost."""
    return [(loss.pointer, loss.what, loss.severity) for loss in report.losses]


def added_at(report: Report) -> list[str]:
    """The places of what was added."""
    return [addition.pointer for addition in report.additions]


def refused_at(read: Callable[..., object], *given: Any, **named: Any) -> str | None:
    """The place that the fault names with which this is refused."""
    with pytest.raises(Fault) as caught:
        read(*given, **named)
    return caught.value.pointer


def without_nulls(value: Any) -> Any:
    """The same JSON, where a null says what absence says."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
