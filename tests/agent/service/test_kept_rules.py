import json
import stat
from pathlib import Path

import pytest

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.service.toolsets import KeptRule, KeptRules
from sightline.errors import Code, Fault

EDIT = KeptRule("edit_file", "folder /project", {"/path": "src/**"})


def test_a_rule_is_kept_for_its_owner_and_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert KeptRules(folder).all() == ()
    KeptRules(folder).keep(EDIT)
    KeptRules(folder).keep(EDIT)
    KeptRules(folder).keep(KeptRule("list_files", "folder /project"))
    rules = KeptRules(folder)
    assert rules.all() == (EDIT, KeptRule("list_files", "folder /project"))
    assert stat.S_IMODE(rules.file.stat().st_mode) == 0o600
    assert json.loads(rules.file.read_bytes())[0]["arguments"] == {"/path": "src/**"}
    assert [path.name for path in folder.iterdir()] == ["approvals.json"]


def test_a_tool_of_the_same_name_from_elsewhere_is_another_tool(tmp_path: Path) -> None:
    rules = KeptRules(tmp_path)
    rules.keep(EDIT)
    assert rules.of({"edit_file": "folder /project", "other": "folder /project"}) == (EDIT,)
    assert rules.of({"edit_file": "folder /project/below"}) == ()
    assert rules.of({"edit_file": "python /project"}) == ()
    assert rules.of({}) == ()


def test_a_rule_says_what_it_allows() -> None:
    assert EDIT.rule == ApprovalRule("edit_file", "allow", {"/path": "src/**"})
    assert EDIT.words == "edit_file (/path like src/**)"
    assert KeptRule("ls", "folder /").words == "ls (any arguments)"


@pytest.mark.parametrize("text", ["", "{}", '[{"tool": "x"}]', '[{"tool": "x", "place": "y", "more": 1}]', "[1]"])
def test_a_file_that_cannot_be_read_is_a_fault_and_is_not_written_over(tmp_path: Path, text: str) -> None:
    rules = KeptRules(tmp_path)
    rules.file.write_text(text)
    for act in (rules.all, lambda: rules.keep(EDIT)):
        with pytest.raises(Fault) as caught:
            act()
        assert (caught.value.code, "approvals.json" in caught.value.message) == (Code.CONFIG, True)
    assert rules.file.read_text() == text


def test_a_folder_that_cannot_be_used_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Fault, match="Not a directory"):
        KeptRules(tmp_path / "file").all()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "approvals.json").mkdir()
    with pytest.raises(Fault, match="Is a directory"):
        KeptRules(tmp_path / "other").all()


def test_a_rule_is_taken_back(tmp_path: Path) -> None:
    rules = KeptRules(tmp_path)
    other = KeptRule("list_files", "folder /project")
    rules.keep(EDIT)
    rules.keep(other)
    assert rules.forget(EDIT)
    assert rules.all() == (other,)
    assert not rules.forget(EDIT)
