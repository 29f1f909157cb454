"""Law 6, shown = sent: the hash of the body on screen at release is that of the body that the provider gets."""

import asyncio
import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.fault_codes import status_of
from sightline.editing.operations import AnyOperation, Duplicate, Redo, Remove, Reset, Set, SetBody, Undo, operation
from sightline.errors import Fault
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from sightline.model.exchange import AttemptStarted, Received, Released
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.contract.leaves import leaves
from tests.examples import examples
from tests.holding import JSON, asking, held
from tests.relay_stage import DIALECTS, PATHS, Stage, asks, play
from tests.reply_samples import SAYS, whole
from tests.upstream import answer

TEXTS = st.sampled_from(["", "tea", "naïve 😀", "</script>", "a\nb\t\\", "{}", '{"city": "Oslo"}'])


@lru_cache
def requests_of(spoken: str) -> tuple[Case, ...]:
    return tuple(case for case in cases("request.json") if case.dialect == spoken)


def operations(draw: Callable[[st.SearchStrategy[Any]], Any], hold: Hold) -> AnyOperation:
    """Anything that a person may do to what is on screen."""
    draft = hold.draft
    kind = draw(st.sampled_from(["set_text", "delete", "restore", "set", "remove", "again", "body", "back"]))
    sections = [each.id for each in draft.sections] or ["s1"]
    section = draw(st.sampled_from(sections))
    if kind in ("delete", "restore"):
        return operation({"op": kind, "section": section})
    if kind == "set_text":
        return operation({"op": kind, "section": section, "text": draw(TEXTS)})
    if kind == "again":
        return Duplicate(section=section)
    if kind == "body":
        return SetBody(body=json.dumps(decode(draft.data), indent=draw(st.sampled_from([None, 1]))))
    if kind == "back":
        return draw(st.sampled_from([Undo(), Undo(), Redo(), Reset()]))
    places = [at for at, _ in leaves(decode(draft.data)) if at] or ["/x"]
    pointer = draw(st.sampled_from(places))
    return Remove(pointer=pointer) if kind == "remove" else Set(pointer=pointer, value=draw(TEXTS))


def edited(holds: Holds, hold: Hold, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Some edits, of which some are refused; what is left can be sent."""
    for _ in range(draw(st.integers(0, 6))):
        before = hold.draft
        try:
            holds.edit(hold.exchange, operations(draw, hold))
        except Fault as fault:
            if not 400 <= status_of(fault) < 500 or hold.draft is not before:
                raise
    while not holds.validity(hold).ok:
        with pytest.raises(Fault) as caught:
            holds.release(hold.exchange, hold.draft.sha256)
        assert caught.value.status == 422
        holds.edit(hold.exchange, Undo())


async def sent_as_shown(stage: Stage, spoken: str, provider: str, draw: Callable[..., Any], body: bytes) -> None:
    holds = stage.relay.holds
    holds.set_mode("every")
    stage.upstream.script = [answer(200, whole(provider, SAYS), JSON)]
    packed = gzip.compress(body) if draw(st.booleans()) else None
    headers = (("Content-Encoding", "gzip"),) if packed else ()
    coding = {"coded": packed, "coding": "gzip"} if packed else {}
    async with asyncio.timeout(60), asking(stage, asks(spoken, body=body, headers=headers, **coding)) as _:
        hold = await held(stage)
        edited(holds, hold, draw)
        shown, name = hold.draft.data, hold.draft.sha256
        with pytest.raises(Fault):
            holds.release(hold.exchange, sha256(shown + b" ").hexdigest())
        holds.release(hold.exchange, name)
    (seen,) = stage.upstream.seen
    body_sent = gzip.decompress(seen.body) if seen.header("content-encoding") else seen.body
    assert body_sent == shown
    assert sha256(body_sent).hexdigest() == name
    facts = stage.facts()
    assert [fact.sha256 for fact in facts if isinstance(fact, Released | AttemptStarted)] == [name, name]
    assert stage.bodies()[name] == shown
    received = facts[0]
    assert isinstance(received, Received)
    if name == received.sha256:
        assert seen.body == (packed or body)


@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize("spoken", DIALECTS)
@settings(max_examples=examples(8))
@given(pick=st.data())
def test_whatever_was_done_to_a_request_what_leaves_is_what_was_on_screen(
    spoken: str, provider: str, pick: st.DataObject
) -> None:
    body = pick.draw(st.sampled_from(requests_of(spoken))).file("request.json")
    refusals: list[Fault] = []

    async def story(stage: Stage) -> None:
        if spoken != provider and (await _refused(stage, spoken, body, refusals)):
            return  # what leaves its history with one provider cannot go to another
        await sent_as_shown(stage, spoken, provider, pick.draw, body)

    with TemporaryDirectory() as folder:
        play(story, Path(folder), provider)


async def _refused(stage: Stage, spoken: str, body: bytes, refusals: list[Fault]) -> bool:
    from sightline.exchange.lane import LaneRoute
    from sightline.exchange.outbound import outbound_for

    asked = asks(spoken, body=body)
    try:
        outbound_for(asked, LaneRoute(stage.relay.router.route_for(asked)), {"ACME_KEY": "k"})
    except Fault as fault:
        refusals.append(fault)
    return bool(refusals)


def test_there_are_requests_of_every_dialect() -> None:
    assert all(len(requests_of(spoken)) > 3 for spoken in PATHS)
