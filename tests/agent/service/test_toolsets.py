"""The configured tools, and the rules that a person keeps for all runs."""

import asyncio
import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.service.approvers import SavedRule, SavedRules
from sightline.agent.tools.opening import OpenToolsets, Toolsets
from sightline.errors import Code, Fault
from tests.running_stage import FakeTools


class Workshop:
    """Opens toolsets, and can be told that one cannot be."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, ...]] = []
        self.tools: list[FakeTools] = []
        self.trouble: Fault | None = None

    async def open(self, names: Sequence[str]) -> OpenToolsets:
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble
        self.opened.append(tuple(names))
        self.tools.append(FakeTools())
        return OpenToolsets((self.tools[-1],), None)


async def test_tools_are_opened_once_and_closed_at_the_end() -> None:
    shop = Workshop()
    toolsets = Toolsets(("files", "web"), shop.open)
    first, again = await asyncio.gather(
        toolsets.open_toolsets(["web", "files"]), toolsets.open_toolsets(("files", "web"))
    )
    other = await toolsets.open_toolsets(["web"])
    assert (first is again, first is other, shop.opened) == (True, False, [("files", "web"), ("web",)])
    await toolsets.close()
    assert [tools.is_closed for tools in shop.tools] == [True, True]
    await toolsets.close()


async def test_only_configured_tools_can_be_named() -> None:
    with pytest.raises(Fault, match=r"no tools named /etc/passwd, x") as caught:
        await Toolsets(("files",), Workshop().open).open_toolsets(["x", "files", "/etc/passwd"])
    assert (caught.value.code, caught.value.hint) == (Code.CONFIG, "Configured are: files.")
    with pytest.raises(Fault) as none:
        await Toolsets((), Workshop().open).open_toolsets(["x"])
    assert "[tools.NAME]" in none.value.hint


async def test_what_cannot_be_opened_is_tried_again_the_next_time() -> None:
    shop = Workshop()
    toolsets = Toolsets(("files",), shop.open)
    shop.trouble = Fault(Code.CONFIG, "no such file", hint="Check it.")
    with pytest.raises(Fault, match="no such file"):
        await toolsets.open_toolsets(["files"])
    shop.trouble = None
    assert (await toolsets.open_toolsets(["files"])).definitions
    await toolsets.close()


EDIT = SavedRule("edit_file", "folder /project", {"/path": "src/**"})


def test_a_rule_is_kept_for_its_owner_and_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert SavedRules(folder).all() == ()
    SavedRules(folder).keep(EDIT)
    SavedRules(folder).keep(EDIT)
    SavedRules(folder).keep(SavedRule("list_files", "folder /project"))
    rules = SavedRules(folder)
    assert rules.all() == (EDIT, SavedRule("list_files", "folder /project"))
    assert stat.S_IMODE(rules.file.stat().st_mode) == 0o600
    assert json.loads(rules.file.read_bytes())[0]["arguments"] == {"/path": "src/**"}
    assert [path.name for path in folder.iterdir()] == ["approvals.json"]


def test_a_tool_of_the_same_name_from_elsewhere_is_another_tool(tmp_path: Path) -> None:
    rules = SavedRules(tmp_path)
    rules.keep(EDIT)
    assert rules.of({"edit_file": "folder /project", "other": "folder /project"}) == (EDIT,)
    assert rules.of({"edit_file": "folder /project/below"}) == ()
    assert rules.of({"edit_file": "python /project"}) == ()
    assert rules.of({}) == ()


def test_a_rule_says_what_it_allows() -> None:
    assert EDIT.rule == ApprovalRule("edit_file", "allow", {"/path": "src/**"})
    assert EDIT.words == "edit_file (/path like src/**)"
    assert SavedRule("ls", "folder /").words == "ls (any arguments)"


@pytest.mark.parametrize("text", ["", "{}", '[{"tool": "x"}]', '[{"tool": "x", "place": "y", "more": 1}]', "[1]"])
def test_a_file_that_cannot_be_read_is_a_fault_and_is_not_written_over(tmp_path: Path, text: str) -> None:
    rules = SavedRules(tmp_path)
    rules.file.write_text(text)
    for act in (rules.all, lambda: rules.keep(EDIT)):
        with pytest.raises(Fault) as caught:
            act()
        assert (caught.value.code, "approvals.json" in caught.value.message) == (Code.CONFIG, True)
    assert rules.file.read_text() == text


def test_a_folder_that_cannot_be_used_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Fault, match="Not a directory"):
        SavedRules(tmp_path / "file").all()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "approvals.json").mkdir()
    with pytest.raises(Fault, match="Is a directory"):
        SavedRules(tmp_path / "other").all()


def test_a_rule_is_taken_back(tmp_path: Path) -> None:
    rules = SavedRules(tmp_path)
    other = SavedRule("list_files", "folder /project")
    rules.keep(EDIT)
    rules.keep(other)
    assert rules.forget(EDIT)
    assert rules.all() == (other,)
    assert not rules.forget(EDIT)
