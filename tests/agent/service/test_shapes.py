import msgspec

from sightline.agent.service.shapes import ApprovePending, HoldPending, Pending, PendingCall


def test_what_is_pending_says_of_which_kind_it_is() -> None:
    call = PendingCall(key="1.1", id="a", name="f", arguments={"n": 1})
    for pending, step in ((ApprovePending((call,), {}), "approve"), (HoldPending("x_1"), "hold")):
        data = msgspec.json.encode(pending)
        assert msgspec.json.decode(data)["step"] == step
        assert msgspec.json.decode(data, type=Pending) == pending
