"""Law 1, verbatim: same dialect, not edited, the body's bytes out are the body's bytes in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.translate import StreamTranslation, translate_reply, translate_request
from sightline.model.report import Report
from sightline.wire.jsontext import decode, encode
from tests.contract.cases import Case, cases
from tests.contract.generated import TARGET, requests, spaced
from tests.contract.splits import split_at
from tests.examples import examples


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_a_request_passes_as_it_came(case: Case) -> None:
    data = case.file("request.json")
    passed = translate_request(data, case.dialect, case.dialect)
    assert passed.data is data
    assert not passed.report.losses
    assert not passed.report.additions


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(20))
@given(request=requests(), random=st.randoms())
def test_a_generated_request_passes_as_it_came(name: str, request, random) -> None:
    body = dialect(name).write_request(request, TARGET, Report())
    data = spaced(body, random)
    assert decode(data) == decode(encode(body))
    assert translate_request(data, name, name).data == data


@pytest.mark.parametrize("case", cases("reply.json"), ids=str)
def test_a_reply_passes_as_it_came(case: Case) -> None:
    data = case.file("reply.json")
    assert translate_reply(data, case.dialect, case.dialect).data is data


@pytest.mark.parametrize("case", cases("stream.sse"), ids=str)
@settings(max_examples=examples(5))
@given(cuts=st.lists(st.integers(0, 4000)))
def test_a_stream_passes_as_it_came_however_it_is_cut(case: Case, cuts: list[int]) -> None:
    data = case.file("stream.sse")
    translation = StreamTranslation(case.dialect, case.dialect)
    passed = [translation.feed(piece) for piece in split_at(data, cuts)]
    assert b"".join([*passed, translation.close()]) == data


def names_its_model(case: Case) -> bool:
    """Whether the body, and not the URL or nothing at all, says which model is asked."""
    return not dialect(case.dialect).model_in_path and isinstance(decode(case.file("request.json")), dict)


@pytest.mark.parametrize("case", [case for case in cases("request.json") if names_its_model(case)], ids=str)
def test_only_the_model_changes_when_only_the_model_is_changed(case: Case) -> None:
    data = case.file("request.json")
    changed = translate_request(data, case.dialect, case.dialect, model="another-model")
    before, after = decode(data), decode(changed.data)
    assert isinstance(before, dict)
    assert after == {**before, "model": "another-model"}
