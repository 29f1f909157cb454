"""Sections are the JSON of the API: every field stands there, whether it is set or not."""

import msgspec

from sightline.editing.section import CallReference, Section, SectionPart, Tokens


def test_a_section_is_told_whole() -> None:
    part = SectionPart(id="s1.p1", type="text", pointer="/messages/0/content", text="hi", editable=True)
    section = Section(
        id="s1",
        kind="user",
        role="user",
        label="User 1",
        pointer="/messages/0",
        text="hi",
        editable=True,
        deleted=False,
        parts=(part,),
        category="user",
        tokens=Tokens(1, 1, 2),
        answers=(CallReference("c1", "Bash", "{}", "s0"),),
    )
    told = msgspec.to_builtins(section)
    assert {"id", "kind", "role", "pointer", "text", "editable", "deleted", "parts"} <= told.keys()
    assert {"id", "type", "pointer", "text", "call_id", "editable", "deleted"} <= told["parts"][0].keys()
    assert told["tokens"] == {"tokens": 1, "low": 1, "high": 2}
    assert list(told["answers"]) == [{"call_id": "c1", "name": "Bash", "arguments": "{}", "section": "s0"}]
