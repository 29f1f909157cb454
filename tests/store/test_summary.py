import msgspec

from sightline.store.summary import Summary


def test_a_summary_in_json_says_only_what_is_known() -> None:
    assert msgspec.json.encode(Summary(id="x_1", at=1.5)) == b'{"id":"x_1","at":1.5}'
