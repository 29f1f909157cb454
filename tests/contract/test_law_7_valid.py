"""Law 7, valid after every operation: a translation never leaves what the target rejects for its structure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.translate import translate_request
from sightline.model.report import Report
from sightline.wire.jsontext import decode, encode
from tests.contract.cases import Case, others, pairs
from tests.contract.generated import TARGET, requests


def errors(name: str, data: bytes) -> list[str]:
    request = dialect(name).read_request(decode(data))
    return [
        f"{problem.pointer}: {problem.message}"
        for problem in dialect(name).problems(request)
        if problem.severity == "error" and problem.pointer != "/model"
    ]


def leans_on_state(name: str, data: bytes) -> bool:
    """Whether a part of the conversation is with the provider, so that the body alone is not the whole request."""
    request = dialect(name).read_request(decode(data))
    return request.options.previous_response_id is not None or "thread" in request.extras


@pytest.mark.parametrize(("case", "target"), pairs("request.json"), ids=str)
def test_a_valid_request_is_valid_in_every_dialect(case: Case, target: str) -> None:
    data = case.file("request.json")
    if errors(case.dialect, data) or leans_on_state(case.dialect, data):
        return
    assert errors(target, translate_request(data, case.dialect, target).data) == []


@pytest.mark.parametrize("source", NAMES)
@settings(max_examples=40)
@given(request=requests(), policy=st.sampled_from(("in_place", "merge_leading", "merge_all")))
def test_a_generated_request_is_valid_in_every_dialect(source: str, request, policy) -> None:
    body = dialect(source).write_request(request, TARGET, Report())
    assert errors(source, encode(body)) == []
    for target in others(source):
        settings_of = type(TARGET)(system=policy)
        assert errors(target, translate_request(encode(body), source, target, settings=settings_of).data) == []
