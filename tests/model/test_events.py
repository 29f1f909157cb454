import msgspec

from sightline.model.events import Ended, Finished, StreamEvent, TextReceived


def test_events_are_told_apart_by_their_tag() -> None:
    assert msgspec.json.encode(TextReceived(0, "hi")) == b'{"event":"text","part":0,"text":"hi"}'
    tags = [member.__struct_config__.tag for member in StreamEvent.__args__]
    assert len(set(tags)) == len(tags)


def test_an_event_says_only_what_it_knows() -> None:
    assert (
        msgspec.json.encode([Finished("stop"), Ended()]) == b'[{"event":"finished","finish":"stop"},{"event":"ended"}]'
    )
