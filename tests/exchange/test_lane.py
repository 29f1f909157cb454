import pytest

from sightline.exchange import lane
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.lane import Lanes
from tests.relay_stage import asks

KEY = (("Authorization", "Bearer sk-client-0123456789"),)


def asked(**more: object) -> ClientRequest:
    return asks("openai-chat", **more)


def test_requests_with_one_head_have_one_lane_whatever_their_bodies() -> None:
    lanes, head = Lanes(()), object()
    first = lanes.lane_of(asked(headers=KEY, head=head, body=b"1"))
    assert lanes.lane_of(asked(headers=KEY, head=head, body=b"2")) is first
    assert lanes.lane_of(asked(headers=KEY, head=object())) is not first


def test_without_an_object_for_it_the_head_is_what_it_says() -> None:
    lanes = Lanes(())
    first = lanes.lane_of(asked(headers=KEY))
    assert lanes.lane_of(asked(headers=KEY)) is first
    assert lanes.lane_of(asked(headers=())) is not first
    assert lanes.lane_of(asked(headers=KEY, path="/v1/other")) is not first


def test_a_lane_knows_the_client_and_every_secret() -> None:
    found = Lanes(("configured-key",)).lane_of(asked(headers=KEY))
    assert found.caller.redaction.text("sk-client-0123456789 configured-key") == "*** ***"


def test_so_many_lanes_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "MOST_LANES", 2)
    lanes = Lanes(())
    first = lanes.lane_of(asked(headers=KEY))
    for number in range(2):
        lanes.lane_of(asked(headers=(("X-A", str(number)),)))
    assert lanes.lane_of(asked(headers=KEY)) is not first
