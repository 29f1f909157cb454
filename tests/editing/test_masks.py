from collections.abc import Sequence

import msgspec
import pytest

from sightline.editing.draft import Draft
from sightline.editing.mask_making import MaskMaker
from sightline.editing.masks import Mask, MaskOutcome, Strip, apply_masks, project_of, read_masks
from sightline.editing.operations import Delete, Duplicate, Insert, Set, SetText
from sightline.errors import Fault
from tests.editing.conversations import chat, claude, drafted, ids, mask_of, part_of, strip_of


def kept(draft: Draft, operation, scope: str = "session", name: str = "work") -> Mask:
    return mask_of(draft, operation, draft.with_edit(operation), scope, name)


def outcomes(draft: Draft, *masks: Mask, session: str = "work", project: str = "") -> list[tuple[str, str]]:
    _, found = apply_masks(draft, masks, session=session, project=project)
    return [(outcome.outcome, outcome.section) for outcome in found]


def applied(draft: Draft, *masks: Mask) -> tuple[Draft, Sequence[MaskOutcome]]:
    """The draft of a request of the session `work` after these masks."""
    return apply_masks(draft, masks, session="work", project="")


def texts(draft: Draft) -> list[str]:
    return [section.text for section in draft.sections if not section.deleted]


def grown() -> Draft:
    """The next turn of the conversation, with a reminder in front that was not there before."""
    messages = chat()["messages"]
    more = [{"role": "assistant", "content": "Bye."}, {"role": "user", "content": "Wait."}]
    reminder = {"role": "user", "content": "<system-reminder>Mind the gap.</system-reminder>"}
    return drafted(chat(messages=[messages[0], reminder, *messages[1:], *more]), "openai-chat")


def test_a_text_is_put_in_again_in_the_next_turn_although_everything_has_moved() -> None:
    draft = drafted(chat(), "openai-chat")
    mask = kept(draft, SetText(section=ids(draft, "user")[0], text="What is 1+2?"))
    later, (outcome,) = applied(grown(), mask)
    assert outcome.outcome == "applied"
    assert later.section(outcome.section).text == "What is 1+2?"
    assert "What is 1+1?" not in texts(later)


def test_a_deletion_takes_the_pair_again() -> None:
    draft = drafted(chat(), "openai-chat")
    mask = kept(draft, Delete(section=ids(draft, "tool_result")[0]))
    assert (mask.kind, mask.text, mask.label) == ("delete", None, draft.section(ids(draft, "tool_result")[0]).label)
    later, _ = applied(grown(), mask)
    assert len(later.request.messages) == len(grown().request.messages) - 2


def test_a_mask_is_anchored_to_what_the_client_sends_however_often_it_is_edited() -> None:
    draft = drafted(chat(), "openai-chat")
    user = ids(draft, "user")[0]
    once = draft.with_edit(SetText(section=user, text="Once."))
    twice = SetText(section=user, text="Twice.")
    mask = mask_of(once, twice, once.with_edit(twice), "session", "work")
    assert mask.id == kept(draft, SetText(section=user, text="Once.")).id
    assert "Twice." in texts(applied(drafted(chat(), "openai-chat"), mask)[0])


def test_a_part_is_found_although_its_section_has_changed() -> None:
    draft = drafted(claude())
    section, part = part_of(draft, "tool", 1)
    mask = kept(draft, Delete(section=section, part=part))
    more = {"name": "mul", "input_schema": {"type": "object"}}
    later, (outcome,) = applied(drafted(claude(tools=[more, *claude()["tools"]])), mask)
    assert outcome.outcome == "applied"
    assert [tool.name for tool in later.request.tools] == ["mul", "add"]


def test_an_option_can_be_kept_by_its_part_and_by_its_place() -> None:
    draft = drafted(chat(), "openai-chat")
    mask = kept(draft, Set(pointer="/temperature", value=0))
    assert (mask.kind, mask.text) == ("set_text", "0")
    later, _ = applied(grown(), mask)
    assert later.request.options.temperature == 0


@pytest.mark.parametrize(
    "operation", [Insert(pointer="/top_p", value=1), Set(pointer="/nowhere", value=1), Duplicate(section="s1")]
)
def test_other_edits_cannot_be_kept(operation) -> None:
    draft = drafted(chat(), "openai-chat")
    with pytest.raises(Fault) as caught:
        mask_of(draft, operation, draft, "session", "work")
    assert caught.value.status == 422
    assert "cannot be repeated" in caught.value.message


def test_what_the_client_did_not_send_cannot_be_kept() -> None:
    draft = drafted(claude())
    more = draft.with_edit(Insert(pointer="/messages/-", value={"role": "user", "content": "Mine."}))
    with pytest.raises(Fault, match="did not send this section"):
        kept(more, SetText(section=ids(more, "user")[-1], text="Still mine."))
    longer = draft.with_edit(Insert(pointer="/messages/1/content/1", value={"type": "text", "text": "Mine."}))
    part = next(part for part in longer.section(ids(longer, "assistant")[0]).parts if part.text == "Mine.")
    with pytest.raises(Fault, match="did not send this part"):
        kept(longer, Delete(section=ids(longer, "assistant")[0], part=part.id))


def test_a_mask_whose_anchor_is_gone_says_so_and_changes_nothing() -> None:
    draft = drafted(chat(), "openai-chat")
    mask = kept(draft, SetText(section=ids(draft, "user")[0], text="What is 1+2?"))
    other = drafted(claude(messages=[{"role": "user", "content": "Hello."}]))
    after, (outcome,) = applied(other, mask)
    assert after is other
    assert (outcome.mask, outcome.outcome) == (mask.id, "missing")
    assert outcome.why


def repeated(*words: str) -> Draft:
    messages = []
    for word in words:
        messages += [{"role": "user", "content": word}, {"role": "assistant", "content": f"{word}?"}]
    return drafted(chat(messages=messages), "openai-chat")


def test_equal_sections_are_distinguished_by_what_precedes_them() -> None:
    draft = repeated("a", "go on", "b", "go on")
    mask = kept(draft, SetText(section=ids(draft, "user")[3], text="stop"))
    later, (outcome,) = applied(repeated("x", "go on", "b", "go on", "c"), mask)
    assert outcome.outcome == "applied"
    assert [later.section(name).text for name in ids(later, "user")] == ["x", "go on", "b", "stop", "c"]


def test_indistinguishable_sections_are_left_unchanged() -> None:
    draft = repeated("a", "go on", "b", "go on")
    mask = kept(draft, SetText(section=ids(draft, "user")[3], text="stop"))
    assert outcomes(repeated("go on", "go on", "go on"), mask) == [("ambiguous", "")]
    assert outcomes(repeated("b", "go on", "b", "go on"), mask) == [("ambiguous", "")]


def parted(*sections: list[str]) -> Draft:
    messages = []
    for words in sections:
        messages += [
            {"role": "user", "content": [{"type": "text", "text": word} for word in words]},
            {"role": "assistant", "content": "Yes."},
        ]
    return drafted(chat(messages=messages), "openai-chat")


def test_equal_parts_are_distinguished_by_section_and_neighbour() -> None:
    draft = parted(["a", "same"], ["b", "same"])
    section = draft.section(ids(draft, "user")[1])
    mask = kept(draft, SetText(section=section.id, part=section.parts[1].id, text="other"))
    assert outcomes(parted(["a", "same"], ["b", "same"]), mask) == [("applied", section.id)]
    assert outcomes(parted(["a", "same"], ["b", "same", "more"]), mask) == [("applied", section.id)]
    assert outcomes(parted(["c", "same"], ["c", "same"]), mask) == [("ambiguous", "")]
    twice = parted(["c"], ["b", "same"], ["b", "same"])
    assert outcomes(twice, mask) == [("ambiguous", "")]
    inner = parted(["b", "same", "same"])
    own = inner.section(ids(inner, "user")[0])
    second = kept(inner, SetText(section=own.id, part=own.parts[2].id, text="other"))
    assert outcomes(inner, second) == [("applied", own.id)]
    both = parted(["x", "same", "same"], ["b", "same", "same"])
    assert outcomes(both, second)[0][0] == "applied"


def test_the_narrowest_scope_counts() -> None:
    draft = drafted(chat(), "openai-chat")
    user = ids(draft, "user")[0]
    everywhere = kept(draft, SetText(section=user, text="All."), "all", "")
    project = kept(draft, SetText(section=user, text="Project."), "project", "shop")
    session = kept(draft, SetText(section=user, text="Session."), "session", "work@shop")
    masks = [session, everywhere, project]

    def said(session: str) -> str:
        after, found = apply_masks(draft, masks, session=session, project=project_of(session))
        assert [outcome.outcome for outcome in found] == ["applied"]
        return after.section(user).text

    assert said("work@shop") == "Session."
    assert said("play@shop") == "Project."
    assert said("play@home") == said("play") == "All."
    assert len({mask.id for mask in masks}) == 3
    assert everywhere.name == ""


def test_patches_of_broader_scopes_count_too_where_they_fit_together() -> None:
    first = prompted("One.\nTwo.\nSix.\n")
    system = ids(first, "system")[0]

    def patch(scope: str, name: str, text: str, of: Draft = first) -> Mask:
        return kept(of, SetText(section=system, text=text), scope, name)

    def said(*masks: Mask, prompt: str = "One.\nTwo.\nSix.\n") -> str:
        return texts(apply_masks(prompted(prompt), masks, session="work@shop", project="shop")[0])[0]

    session = patch("session", "work@shop", "One.\nTWO.\nSix.\n")
    project = patch("project", "shop", "One.\nTwo.\nSIX.\n")
    everywhere = patch("all", "", "ONE.\nBut two.\nSix.\n")
    assert said(session, project) == "One.\nTWO.\nSIX.\n"
    assert said(project, everywhere) == "ONE.\nBut two.\nSIX.\n"
    assert said(session, project, everywhere) == "One.\nTWO.\nSIX.\n"  # the second line is the session's
    assert said(kept(first, Delete(section=system)), project) == "One.\nTwo.\nSIX.\n"  # that is for another session
    gone = kept(first, Delete(section=system), "all", "")
    assert said(gone, project) == "One.\nTwo.\nSIX.\n"
    by_hand = read_masks(
        [{"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "One", "new": "1"}]}]
    )
    assert said(*by_hand, session) == "1.\nTWO.\nSix.\n"
    assert said(*by_hand, patch("session", "work@shop", "Uno.\nTwo.\nSix.\n")) == "Uno.\nTwo.\nSix.\n"


def test_a_patch_of_words_that_a_broader_mask_puts_in_is_found_in_a_prompt_that_has_changed() -> None:
    by_hand = read_masks(
        [{"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "kind", "new": "stern"}]}]
    )
    first = prompted("Be kind.\nOn main.")
    beneath, _ = applied(first, *by_hand)
    system = ids(first, "system")[0]
    after = beneath.with_edit(SetText(section=system, text="Be stern and just.\nOn main."))
    _, mask = MaskMaker(first, "session", "work", beneath).between(beneath, after)[0]
    for branch in ("main", "dev"):
        later, found = applied(prompted(f"Be kind.\nOn {branch}."), *by_hand, mask)
        assert (texts(later)[0], [each.outcome for each in found]) == (
            f"Be stern and just.\nOn {branch}.",
            ["applied", "applied"],
        )


def test_of_equal_masks_the_last_counts() -> None:
    draft = drafted(chat(), "openai-chat")
    user = ids(draft, "user")[0]
    masks = [kept(draft, SetText(section=user, text=text)) for text in ("One.", "Two.")]
    assert applied(draft, *masks)[0].section(user).text == "Two."


def test_masks_of_other_sessions_or_projects_are_ignored() -> None:
    draft = drafted(chat(), "openai-chat")
    mask = kept(draft, Delete(section=ids(draft, "system")[0]), "session", "work")
    nobodys = msgspec.structs.replace(mask, scope="project", name="")
    after, found = apply_masks(draft, [mask, nobodys], session="play", project="")
    assert (after, found) == (draft, ())


def test_a_mask_that_would_break_the_request_is_refused() -> None:
    draft = drafted(
        {"max_tokens": 1, "messages": [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]}
    )
    masks = [kept(draft, Delete(section=name)) for name in ids(draft, "user")]
    after, found = applied(draft, *masks)
    assert [outcome.outcome for outcome in found] == ["applied", "refused"]
    assert found[1].why
    assert len(after.request.messages) == 1


def test_a_strip_is_a_mask() -> None:
    mask = strip_of(Strip(what="thinking"), "all", "")
    draft = drafted(claude())
    after, (outcome,) = applied(draft, mask)
    assert (outcome.outcome, outcome.section) == ("applied", ids(draft, "assistant")[0])
    assert b"c2VhbDE=" not in after.data
    assert outcomes(after, mask) == [("applied", "")]


def test_a_strip_of_a_tool_that_is_not_there_says_so() -> None:
    draft = drafted(claude())
    assert outcomes(draft, strip_of(Strip(what="tool", tool="mul"), "session", "work")) == [("missing", "")]


def test_a_strip_that_leaves_something_says_what_and_why() -> None:
    messages = [*chat()["messages"][2:4]]
    draft = drafted(chat(messages=messages), "openai-chat")
    after, (outcome,) = apply_masks(draft, [strip_of(Strip(what="tool_results"), "all", "")], session="", project="")
    assert after is draft
    assert (outcome.outcome, outcome.section) == ("refused", ids(draft, "tool_result")[0])
    assert outcome.why


def test_a_text_that_leaves_others_empty_takes_them_along_where_they_are_forbidden() -> None:
    document = claude()
    document["messages"][0]["content"] = [{"type": "text", "text": "What is"}, {"type": "text", "text": " 1+1?"}]
    draft = drafted(document)
    mask = kept(draft, SetText(section=ids(draft, "user")[0], text="Quite different, isn't it."))
    after, (outcome,) = applied(draft, mask)
    assert outcome.outcome == "applied"
    assert [part.text for part in after.request.messages[1].parts] == ["Quite different, isn't it."]


def test_arguments_that_are_no_json_are_refused_although_the_api_takes_them() -> None:
    draft = drafted(chat(), "openai-chat")
    section, part = part_of(draft, "tool_call")
    mask = kept(draft, SetText(section=section, part=part, text="{oops"))
    after, (outcome,) = applied(draft, mask)
    assert after is draft
    assert (outcome.outcome, outcome.why) == ("refused", "the arguments of 'add' are not a JSON object")
    broken = chat()
    broken["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{before"
    own = drafted(broken, "openai-chat")
    assert outcomes(own, kept(own, SetText(section=section, part=part, text="{oops"))) == [("applied", section)]


def test_a_text_that_cannot_stand_is_refused() -> None:
    draft = drafted(claude(messages=[{"role": "user", "content": "Hello."}]))
    mask = kept(draft, SetText(section=ids(draft, "user")[0], text=" "))
    after, (outcome,) = applied(draft, mask)
    assert after is draft
    assert outcome.outcome == "refused"


def test_the_narrower_strip_of_a_class_counts() -> None:
    masks = [
        strip_of(Strip(what="tool_results"), "all", ""),
        strip_of(Strip(what="tool_results", older_than=9), "session", "work"),
    ]
    draft = drafted(claude())
    assert applied(draft, *masks)[0] is draft


def test_masks_come_and_go_as_json() -> None:
    draft = drafted(claude())
    user = ids(draft, "user")[0]
    masks = (
        kept(draft, SetText(section=user, text="")),
        kept(draft, Delete(section=user)),
        strip_of(Strip(what="tool", tool="add"), "project", "shop"),
    )
    assert read_masks(msgspec.to_builtins(masks)) == masks
    (given,) = read_masks([{"scope": "all", "kind": "strip", "strip": {"class": "thinking"}}])
    assert given.id == strip_of(Strip(what="thinking"), "all", "").id


STRIP = {"class": "thinking"}
ANCHOR = {"kind": "user", "content": "00"}


@pytest.mark.parametrize(
    "value",
    [
        {},
        [{"kind": "unknown"}],
        [{"kind": "\ud800"}],
        [{"kind": "strip", "name": "a"}],
        [{"kind": "delete", "name": "a"}],
        [{"kind": "delete", "name": "a", "anchor": ANCHOR, "strip": STRIP}],
        [{"kind": "delete", "name": "a", "anchor": ANCHOR, "text": ""}],
        [{"kind": "set_text", "name": "a", "anchor": ANCHOR}],
        [{"kind": "strip", "name": "a", "strip": {"class": "tool"}}],
        [{"kind": "strip", "name": "a", "strip": {"class": "thinking", "tool": "add"}}],
        [{"kind": "strip", "name": "a", "strip": {"class": "thinking", "older_than": -1}}],
        [{"kind": "strip", "strip": STRIP}],
        [{"kind": "strip", "scope": "all", "name": "a", "strip": STRIP}],
        [{"kind": "patch", "scope": "all", "anchor": {"kind": "system"}}],
        [{"kind": "patch", "scope": "all", "anchor": {"kind": "system"}, "hunks": [], "text": "x"}],
        [{"kind": "patch", "scope": "all", "hunks": []}],
        [{"kind": "delete", "scope": "all", "anchor": {"kind": "system"}, "hunks": []}],
        [{"kind": "patch", "scope": "all", "anchor": {"kind": "system"}, "hunks": [{"older": "x"}]}],
        [3],
    ],
)
def test_a_list_of_masks_that_makes_no_sense_is_refused_whole(value) -> None:
    with pytest.raises(Fault) as caught:
        read_masks(value)
    assert caught.value.status == 422
    assert caught.value.hint


@pytest.mark.parametrize(
    ("session", "project"), [("", ""), ("work", ""), ("work@shop", "shop"), ("a@b@c", "c"), ("a@", "")]
)
def test_project_is_the_text_after_the_last_at_sign(session: str, project: str) -> None:
    assert project_of(session) == project


# --- patches ------------------------------------------------------------------------------------------

PROMPT = "You are a coding agent.\nAnswer in one line.\nGit status: clean"


def prompted(system: str, *words: str) -> Draft:
    messages = [{"role": "user", "content": word} for word in words or ("Hello there, friend.",)]
    return drafted(chat(messages=[{"role": "system", "content": system}, *messages]), "openai-chat")


def patch_of(draft: Draft, kind: str, text: str, **where: str) -> Mask:
    mask = kept(draft, SetText(section=ids(draft, kind)[0], text=text), **where)
    assert mask.kind == "patch"
    return mask


def test_a_kept_edit_survives_when_something_else_in_its_section_changes() -> None:
    mask = patch_of(prompted(PROMPT), "system", PROMPT.replace("one line", "three lines"))
    later, (outcome,) = applied(prompted(PROMPT.replace("clean", "M parser.py")), mask)
    assert (outcome.outcome, outcome.why) == ("applied", "")
    assert texts(later)[0] == "You are a coding agent.\nAnswer in three lines.\nGit status: M parser.py"


def test_a_kept_edit_whose_context_is_gone_or_there_twice_changes_nothing_and_says_so() -> None:
    mask = patch_of(prompted(PROMPT), "system", PROMPT.replace("one line", "three lines"))
    for prompt, result in (("Be kind.", "missing"), (f"{PROMPT}\nAnswer in one line.", "ambiguous")):
        other = prompted(prompt)
        after, (outcome,) = applied(other, mask)
        assert (after is other, outcome.outcome, bool(outcome.why)) == (True, result, True)


def test_short_text_matches_only_a_whole_section() -> None:
    mask = patch_of(prompted(PROMPT, "yes"), "user", "no")
    assert outcomes(prompted(PROMPT, "oh yes, please"), mask) == [("missing", "")]
    assert outcomes(prompted("Another.", "yes"), mask)[0][0] == "applied"


def test_a_patch_finds_its_words_in_a_message_that_grew() -> None:
    draft = prompted(PROMPT, "Mend the parser in lexer.py")
    mask = patch_of(draft, "user", "Mend the parser in parser.py")
    later, _ = applied(prompted(PROMPT, "Note.", "Mend the parser in lexer.py\n<date>"), mask)
    assert texts(later)[2] == "Mend the parser in parser.py\n<date>"
    two = prompted(PROMPT, "Mend the parser in lexer.py\na", "Mend the parser in lexer.py\nb")
    assert outcomes(two, mask)[0][0] == "applied"  # the first has the same message before it
    assert outcomes(
        prompted("Other.", "x", "Mend the parser in lexer.py\na", "Mend the parser in lexer.py\nb"), mask
    ) == [("ambiguous", "")]


def test_a_part_is_patched_although_it_has_changed_elsewhere() -> None:
    tool = {"name": "weigh", "description": "Weighs what is there.", "input_schema": {"type": "object"}}
    draft = drafted(claude(tools=[tool]))
    section, part = part_of(draft, "tool")
    text = draft.section(section).parts[0].text
    mask = kept(draft, SetText(section=section, part=part, text=text.replace("what is there", "things")))
    changed = {**tool, "input_schema": {"type": "object", "properties": {"grams": {"type": "number"}}}}
    later, (outcome,) = applied(drafted(claude(tools=[claude()["tools"][0], changed])), mask)
    assert outcome.outcome == "applied"
    assert later.request.tools[1].description == "Weighs things."
    assert "grams" in later.data.decode()


def test_patches_written_by_hand_name_the_kind_of_section_and_apply_one_after_the_other() -> None:
    masks = read_masks(
        [
            {"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "one", "new": "two"}]},
            {"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "two", "new": "ten"}]},
        ]
    )
    assert len({mask.id for mask in masks}) == 2
    later, found = applied(prompted("one and only"), *masks[:1])
    assert (texts(later)[0], found[0].outcome) == ("two and only", "applied")
    later, found = applied(prompted("one of two"), *masks)
    assert [each.outcome for each in found] == ["applied", "missing"]  # the second has no single place by then
    assert "not in this section" in found[1].why


def test_a_deletion_that_another_has_done_already_counts_as_done() -> None:
    draft = drafted(chat(), "openai-chat")
    both = [kept(draft, Delete(section=ids(draft, kind)[0])) for kind in ("tool_result", "tool_call")]
    later, found = applied(grown(), *both)
    assert [each.outcome for each in found] == ["applied", "applied"]
    assert len(later.request.messages) == len(grown().request.messages) - 2


def test_masks_as_they_were_stored_before_keep_working() -> None:
    draft = prompted(PROMPT)
    anchor = msgspec.to_builtins(patch_of(draft, "system", "New.").anchor)
    (mask,) = read_masks([{"scope": "session", "name": "work", "kind": "set_text", "anchor": anchor, "text": "New."}])
    assert texts(applied(draft, mask)[0])[0] == "New."


def test_a_list_may_come_back_with_what_was_reported_of_each_mask() -> None:
    strip = {"id": "m_1", "scope": "all", "kind": "strip", "strip": {"class": "thinking"}}
    assert read_masks([{**strip, "at": 1.0, "applied": 3, "missed": 1, "last_exchange": "x_1"}]) == read_masks([strip])
