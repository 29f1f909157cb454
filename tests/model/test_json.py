import msgspec

from sightline.model.json import JsonObject


def test_any_json_can_be_decoded_into_it() -> None:
    text = b'{"a":[1,2.5,null,true,{"b":"c"}]}'
    assert msgspec.json.decode(text, type=JsonObject) == {"a": [1, 2.5, None, True, {"b": "c"}]}
