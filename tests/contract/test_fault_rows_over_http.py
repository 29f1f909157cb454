"""Every row of the table of errors, played by an upstream: how often it is asked again, and after how long."""

import asyncio
import json
from pathlib import Path

import pytest

from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.transport.retry import LONGEST_WAIT, STATUSES
from tests.contract.test_fault_table import ROWS, Row, ending
from tests.engine_stage import EngineStage
from tests.upstream import Play, Upstream, answer

RETRIES = 2


def played(row: Row) -> Play:
    """The answer that the row describes."""
    case = row.case
    headers = list(case.get("headers", {}).items())
    if "stream" in case:
        return answer(200, case["stream"].encode(), [("content-type", "text/event-stream"), *headers])
    body = case["body"]
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return answer(case["status"], data, headers)


async def asked(row: Row, folder: Path) -> tuple[Fault, list[float], int]:
    """The fault that a caller gets in the end, the waits, and the number of requests that the provider saw."""
    async with Upstream([played(row)]) as upstream:
        provider = Provider(base_url=upstream.url, dialect=row.case["dialect"], stream_max_retries=RETRIES)
        stage = EngineStage(folder, provider)
        try:
            fault = ending(await stage.ask())
        except Fault as raised:
            fault = raised
        finally:
            await stage.close()
        return fault, stage.clock.waits, len(upstream.seen)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_providers_error_is_tried_again_only_where_that_can_help(row: Row, tmp_path: Path) -> None:
    fault, waits, requests = asyncio.run(asked(row, tmp_path))
    assert fault.code.value == row.expected["code"]
    status = row.case.get("status", 200)
    told = fault.retry_after
    is_worth_it = status in STATUSES and fault.is_retryable and (told is None or told <= LONGEST_WAIT)
    assert requests == (1 + RETRIES if is_worth_it else 1)
    assert waits == ([told or 0.2, told or 0.4] if is_worth_it else [])


def test_what_waiting_cannot_help_is_never_tried_again() -> None:
    hopeless = {Code.CONTEXT_OVERFLOW, Code.AUTH, Code.PERMISSION, Code.QUOTA, Code.INVALID_REQUEST}
    assert not any(Fault(code, "").is_retryable for code in hopeless | {Code.CONTENT_FILTERED, Code.MODEL_UNKNOWN})
