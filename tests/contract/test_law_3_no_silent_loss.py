"""Law 3, no silent loss: every field of the source is in the target, or is in the loss list.

A leaf is lost in silence when another value in its place changes neither the result nor the report, and no loss covers
it. So each leaf of each document is changed, one at a time.
"""

import re
from functools import partial

import pytest
from hypothesis import given, settings

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import translate_reply, translate_request
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Options
from sightline.wire.jsontext import decode, encode
from sightline.wire.pointer import covers, resolve
from tests.contract.cases import PROVIDERS, Case, cases, others
from tests.contract.generated import TARGET, requests
from tests.contract.leaves import leaves, with_other_leaf
from tests.examples import examples

CONSTANTS = {
    "role": ("assistant", "model"),
    "object": ("response", "chat.completion"),
    "type": ("message", "text", "output_text", "summary_text", "url_citation", "file_citation"),
}
"""Words that only say which shape this is: the shape is what is carried."""

IMPLIED = re.compile(r".*/(total_tokens|totalTokenCount)|/(choices|candidates)/\d+/index")
"""Numbers that follow from what is carried: sums, and the position of a choice among the choices."""


def says_something(pointer: str, value: Json) -> bool:
    key = pointer.rpartition("/")[2]
    return not IMPLIED.fullmatch(pointer) and value not in CONSTANTS.get(key, ())


Told = tuple[object, frozenset[object]]


def told(translate, document: Json, source: str, target: str) -> Told:
    """What comes of a document: the result and the report, or the refusal."""
    try:
        translation = translate(encode(document), source, target)
    except Fault as fault:
        return str(fault), frozenset()
    return translation.data, frozenset(translation.report.losses)


def silent(translate, document: Json, source: str) -> dict[str, list[str]]:
    """What is lost in silence on the way to each other dialect."""
    found = {target: _silent(translate, document, source, target) for target in others(source)}
    return {target: pointers for target, pointers in found.items() if pointers}


def _silent(translate, document: Json, source: str, target: str) -> list[str]:
    result = told(translate, document, source, target)
    lost = [loss.pointer for loss in result[1]]
    return [
        pointer
        for pointer, value in leaves(document)
        if says_something(pointer, value)
        and not any(covers(place, pointer) for place in lost)
        and told(translate, with_other_leaf(document, pointer), source, target) == result
    ]


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_requests(case: Case) -> None:
    assert silent(translate_request, decode(case.file("request.json")), case.dialect) == {}


@pytest.mark.parametrize("case", cases("reply.json"), ids=str)
def test_replies(case: Case) -> None:
    assert silent(translate_reply, decode(case.file("reply.json")), case.dialect) == {}


DEMANDING = Facts(
    refuses=("temperature", "top_k", "stop", "logit_bias", "presence_penalty"),
    refuses_while_reasoning=("top_p", "frequency_penalty", "logprobs"),
    thinking=("between_tools",),
    efforts=("medium",),
    forced_tools=False,
    inline_system=False,
)
"""A model that refuses whatever a model may."""


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_requests_to_a_model_that_refuses_much(case: Case) -> None:
    translate = partial(translate_request, settings=Target(facts=DEMANDING))
    assert silent(translate, decode(case.file("request.json")), case.dialect) == {}


@pytest.mark.parametrize("source", PROVIDERS)
@settings(max_examples=examples(8))
@given(request=requests())
def test_generated_requests(source: str, request) -> None:
    document = dialect(source).write_request(request, TARGET, Report())
    assert silent(translate_request, document, source) == {}


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_a_report_names_the_place_of_every_loss_and_whatever_is_added(case: Case) -> None:
    """Read back in the target's terms, the request has no option that the source did not have."""
    document = decode(case.file("request.json"))
    for target in others(case.dialect):
        translation = translate_request(case.file("request.json"), case.dialect, target)
        for loss in translation.report.losses:
            resolve(document, loss.pointer)
            assert loss.what
            assert loss.why
        back = dialect(target).read_request(decode(translation.data))
        added = [addition.pointer for addition in translation.report.additions]
        for name, place in back.options.places.items():
            if name in Options.__struct_fields__ and getattr(translation.request.options, name) is None:
                assert any(covers(pointer, place) for pointer in added), f"{place} was not asked for by {target}"
