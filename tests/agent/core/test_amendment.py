import msgspec

from sightline.agent.core.conversation import Amendment


def test_an_amendment_can_be_kept_and_read_again() -> None:
    amendment = Amendment("id", "id 'a'", "it is sent as 'a_2'", "/messages/1")
    assert msgspec.json.decode(msgspec.json.encode(amendment), type=Amendment) == amendment
