import pytest

from sightline.chat.core.topics import ROOT, Inherited, Parameters, Topic, Topics, compose_system_prelude
from sightline.errors import Code, Fault
from sightline.settings import ChatSettings


def tree() -> Topics:
    topics = Topics()
    for topic in (
        Topic(id="ai", name="AI", system_prompt="Be exact.", model="acme", parameters=Parameters(temperature=0.2)),
        Topic(id="research", name="Research", parent="ai", style_directives=("Short.",)),
        Topic(id="papers", name="Papers", parent="research", system_prompt="", parameters=Parameters(max_tokens=50)),
        Topic(id="home", name="Home"),
    ):
        topics.add(topic)
    return topics


def refused(act) -> str:
    with pytest.raises(Fault) as caught:
        act()
    assert caught.value.code is Code.USAGE
    assert caught.value.hint
    return caught.value.message


def test_a_topic_has_what_those_above_it_have_unless_it_says_otherwise() -> None:
    research = tree().settings_for("research")
    assert (research.system_prompt, research.model, research.style_directives) == ("Be exact.", "acme", ("Short.",))
    papers = tree().settings_for("papers")
    assert (papers.system_prompt, papers.model, papers.style_directives) == ("", "acme", ("Short.",))
    assert papers.parameters == Parameters(temperature=0.2, max_tokens=50)


def test_changed_parent_settings_apply_to_existing_topics() -> None:
    topics = tree()
    topics.change(Topic(id="ai", name="AI", model="other"))
    assert topics.settings_for("papers").model == "other"
    topics.change(Topic(id=ROOT, system_prompt="For all."))
    assert topics.settings_for("home").system_prompt == "For all."


def test_a_path_leads_to_its_topic_and_back() -> None:
    topics = tree()
    assert topics.path("papers") == ("AI", "Research", "Papers")
    assert topics.at(("ai", "research")) == "research"
    assert topics.at(()) == ROOT
    assert topics.at(("nowhere", "at all")) is None
    assert topics.below("ai") == ["research", "papers"]
    assert "home" in topics
    assert [topic.id for topic in topics] == [ROOT, "ai", "research", "papers", "home"]


def test_a_topic_moves_with_all_below_it() -> None:
    topics = tree()
    topics.change(Topic(id="research", name="Studies", parent="home"))
    assert topics.path("papers") == ("Home", "Studies", "Papers")
    assert topics.at(("AI", "Research")) is None


def test_a_topic_cannot_be_moved_below_itself() -> None:
    assert "below itself" in refused(lambda: tree().change(Topic(id="ai", name="AI", parent="papers")))


def test_names_are_there_and_are_unique_among_their_neighbours() -> None:
    topics = tree()
    assert "needs a name" in refused(lambda: topics.add(Topic(id="x", name=" ")))
    assert "here already" in refused(lambda: topics.add(Topic(id="x", name="home")))
    topics.add(Topic(id="x", name="Home", parent="ai"))
    assert "here already" in refused(lambda: topics.change(Topic(id="x", name="Home")))
    topics.change(Topic(id="x", name="HOME", parent="ai"))


def test_what_is_not_there_cannot_be_used() -> None:
    assert "no topic" in refused(lambda: tree().add(Topic(id="x", name="X", parent="nowhere")))
    assert "already" in refused(lambda: tree().add(Topic(id="ai", name="X")))
    assert "no topic" in refused(lambda: tree().get("nowhere"))


def test_only_a_topic_with_nothing_below_it_can_be_removed() -> None:
    topics = tree()
    assert "below it" in refused(lambda: topics.remove("research"))
    topics.remove("papers")
    topics.remove("research")
    assert topics.below("ai") == []
    assert "all topics" in refused(lambda: topics.remove(ROOT))


def test_the_topic_of_all_topics_stays_what_it_is() -> None:
    assert "no name" in refused(lambda: tree().change(Topic(id=ROOT, name="Mine")))
    assert "no name" in refused(lambda: tree().change(Topic(id=ROOT, parent="ai")))


def test_the_tree_does_not_grow_without_end() -> None:
    topics, parent = Topics(), ROOT
    for number in range(32):
        topics.add(Topic(id=str(number), name="deeper", parent=parent))
        parent = str(number)
    assert "too deep" in refused(lambda: topics.add(Topic(id="x", name="deeper", parent=parent)))


def test_a_copy_changes_on_its_own() -> None:
    topics = tree()
    copy = topics.copy()
    copy.remove("home")
    assert "home" in topics
    assert topics.at(("Home",)) == "home"
    assert "home" not in copy


def test_toolsets_are_inherited_and_can_be_none() -> None:
    topics = Topics()
    topics.add(Topic(id="a", name="A", toolsets=("files", "web")))
    topics.add(Topic(id="b", name="B", parent="a"))
    topics.add(Topic(id="c", name="C", parent="b", toolsets=()))
    assert [topics.settings_for(each).toolsets for each in ("", "a", "b", "c")] == [
        (),
        ("files", "web"),
        ("files", "web"),
        (),
    ]


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
