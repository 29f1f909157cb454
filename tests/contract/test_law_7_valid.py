"""Law 7, valid after every operation: a translation never leaves what the target rejects for its structure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.translate import translate_request
from sightline.model.report import Report
from sightline.wire.jsontext import decode, encode
from tests.contract.cases import Case, cases, others
from tests.contract.generated import TARGET, requests
from tests.examples import examples


def errors(name: str, data: bytes) -> list[str]:
    """What the API rejects, its vendor's own server included."""
    document = decode(data)
    request = dialect(name).read_request(document)
    return [
        f"{problem.pointer}: {problem.message}"
        for problem in (*dialect(name).problems(request), *dialect(name).vendor_problems(document))
        if problem.severity == "error" and problem.pointer != "/model"
    ]


def leans_on_state(name: str, data: bytes) -> bool:
    """Whether a part of the conversation is with the provider, so that the body alone is not the whole request."""
    request = dialect(name).read_request(decode(data))
    return request.options.previous_response_id is not None or "thread" in request.extras


EXEMPT = {
    "anthropic-thread_continued": "answers a call that only the provider has",
    "openai-responses-kept-state": "goes on from a response that only the provider has",
    "openai-chat-litellm": "is what a lenient server takes: a picture in a tool message",
}


def test_only_the_named_cases_are_exempt() -> None:
    found = {
        str(case)
        for case in cases("request.json")
        if errors(case.dialect, case.file("request.json")) or leans_on_state(case.dialect, case.file("request.json"))
    }
    assert found == EXEMPT.keys()


@pytest.mark.parametrize("case", [case for case in cases("request.json") if str(case) not in EXEMPT], ids=str)
def test_a_valid_request_is_valid_in_every_dialect(case: Case) -> None:
    data = case.file("request.json")
    for target in others(case.dialect):
        assert errors(target, translate_request(data, case.dialect, target).data) == [], target


@pytest.mark.parametrize("source", NAMES)
@settings(max_examples=examples(20))
@given(request=requests(), policy=st.sampled_from(("in_place", "merge_leading", "merge_all")))
def test_a_generated_request_is_valid_in_every_dialect(source: str, request, policy) -> None:
    body = dialect(source).write_request(request, TARGET, Report())
    assert errors(source, encode(body)) == []
    for target in others(source):
        settings_of = type(TARGET)(system=policy)
        assert errors(target, translate_request(encode(body), source, target, settings=settings_of).data) == []
