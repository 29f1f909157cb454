import msgspec
import pytest

from sightline.model.message import Message
from sightline.model.parts import Text


def test_a_message_is_a_role_and_parts() -> None:
    assert (
        msgspec.json.encode(Message("user", (Text("hi"),))) == b'{"role":"user","parts":[{"type":"text","text":"hi"}]}'
    )


def test_a_role_that_nobody_knows_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="role"):
        msgspec.json.decode(b'{"role":"narrator"}', type=Message)
