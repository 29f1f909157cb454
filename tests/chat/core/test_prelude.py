from sightline.chat.core.prelude import compose_system_prelude
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.topics import Inherited


def test_without_anything_to_say_there_is_no_prelude() -> None:
    assert compose_system_prelude(Inherited(), ChatSettings()) == ""
    assert compose_system_prelude(Inherited(system_prompt=" \n"), ChatSettings(style_directives=(" ",))) == ""


def test_the_system_prompt_comes_first_and_each_directive_once() -> None:
    topic = Inherited(system_prompt="You help.\n", style_directives=("Be short.", "Be kind."))
    settings = ChatSettings(style_directives=("Be kind. ", "No emojis."))
    assert compose_system_prelude(topic, settings) == "You help.\n\nBe short.\nBe kind.\nNo emojis."


def test_directives_stand_alone_where_there_is_no_system_prompt() -> None:
    assert compose_system_prelude(Inherited(), ChatSettings(style_directives=("Be short.",))) == "Be short."


def test_the_family_s_base_instructions_stand_where_no_topic_has_a_system_prompt() -> None:
    instructed = Inherited(instructions="Use metres.\n", style_directives=("Be short.",))
    assert (
        compose_system_prelude(instructed, ChatSettings(), "Be careful.") == "Be careful.\n\nUse metres.\n\nBe short."
    )
    own = Inherited(system_prompt="You help.", has_system_prompt=True, instructions="Use metres.")
    assert compose_system_prelude(own, ChatSettings(), "Be careful.") == "You help.\n\nUse metres."
    assert compose_system_prelude(Inherited(has_system_prompt=True), ChatSettings(), "Be careful.") == ""
