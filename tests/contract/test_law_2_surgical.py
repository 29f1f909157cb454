"""Law 2, surgical: same dialect, edited, the document differs at the edited pointers only."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.registry import NAMES, dialect
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.wire.document import WireDocument
from sightline.wire.pointer import parse_pointer, resolve
from tests.contract.cases import Case, cases
from tests.contract.generated import TARGET, requests, spaced
from tests.contract.leaves import leaves
from tests.examples import examples

NEW = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.just({"a": [1.0, "é"]}))


def edited(document: Json, pointer: str, value: Json) -> Json:
    changed = copy.deepcopy(document)
    *parents, last = parse_pointer(pointer)
    holder = resolve(changed, "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parents))
    holder[int(last) if isinstance(holder, list) else last] = value
    return changed


def check(data: bytes, draw_pointer, value: Json) -> None:
    wire = WireDocument(data)
    pointer = draw_pointer([at for at, _ in leaves(wire.document) if at])
    before = wire.text_of(pointer)
    after = wire.set(pointer, value)
    assert after.document == edited(wire.document, pointer, value)
    text = after.text_of(pointer)
    start = next(i for i in range(len(data) + 1) if after.data == data[:i] + text + data[i + len(before) :])
    assert after.data[:start] == data[:start]
    assert after.set(pointer, wire.get(pointer)).document == wire.document


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
@settings(max_examples=examples(8))
@given(pick=st.data(), value=NEW)
def test_setting_a_leaf_of_a_real_request_touches_nothing_else(case: Case, pick: st.DataObject, value: Json) -> None:
    check(case.file("request.json"), lambda places: pick.draw(st.sampled_from(places)), value)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(12))
@given(request=requests(), random=st.randoms(), pick=st.data(), value=NEW)
def test_setting_a_leaf_of_a_generated_request_touches_nothing_else(name, request, random, pick, value) -> None:
    body = dialect(name).write_request(request, TARGET, Report())
    check(spaced(body, random), lambda places: pick.draw(st.sampled_from(places)), value)


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_every_place_that_a_value_claims_is_there(case: Case) -> None:
    wire = WireDocument(case.file("request.json"))
    request = dialect(case.dialect).read_request(wire.document)
    places = [message.at for message in request.messages]
    places += [part.at for message in request.messages for part in message.parts]
    places += [tool.at for tool in request.tools]
    places += request.options.places.values()
    for place in places:
        wire.text_of(place)
