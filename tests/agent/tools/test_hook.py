import pytest

from sightline.agent.tools.hooks import EVENTS, Hook, hooks_in
from sightline.errors import Code, Fault


def test_a_file_has_commands_for_events() -> None:
    text = b'{"before_tool": [{"command": "./a", "tools": "run_*", "timeout_s": 5}, {"command": "./b"}], "stop": []}'
    assert hooks_in(text, "hooks.json") == (Hook("before_tool", "./a", "run_*", 5.0), Hook("before_tool", "./b"))
    assert hooks_in(b"{}", "hooks.json") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "hooks.json: "),
        (b"[]", "hooks.json: Expected `object`"),
        (b'{"stop": [{}]}', "missing required field `command`"),
        (b'{"stop": [{"command": ""}]}', "length >= 1"),
        (b'{"stop": [{"command": "x", "tool": "y"}]}', "unknown field `tool`"),
        (b'{"stop": [{"command": "x", "timeout_s": 0}]}', "> 0"),
        (b'{"before_tools": [{"command": "x"}]}', "there is no event 'before_tools'"),
    ],
)
def test_one_that_cannot_be_read_says_what_to_write(text: bytes, words: str) -> None:
    with pytest.raises(Fault) as caught:
        hooks_in(text, "hooks.json")
    assert caught.value.code is Code.CONFIG
    assert words in caught.value.message
    assert caught.value.hint


def test_a_hook_has_a_name_for_people() -> None:
    def careful(given: object) -> None: ...

    assert Hook("stop", "./a").name == "the stop hook `./a`"
    assert Hook("stop", careful).name == "the stop hook `careful`"
    assert len(EVENTS) == 5


def test_a_moment_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Fault, match="there is no event 'after_lunch'") as caught:
        Hook("after_lunch", "true")  # type: ignore[arg-type]
    assert (caught.value.code, "before_tool" in caught.value.hint) == (Code.CONFIG, True)
