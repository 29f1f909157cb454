"""What is allowed for all runs, as the page sees it and takes it back."""

from pathlib import Path

import pytest

from sightline.agent.api.runs import ApprovalShown, Runs
from sightline.agent.service.approvers import KeptRule, KeptRules
from sightline.errors import Fault


async def test_rules_are_seen_and_taken_back(tmp_path: Path) -> None:
    kept = KeptRules(tmp_path)
    runs = Runs(None, None, None, kept)
    assert await runs.list_approvals() == []
    gone = KeptRule("edit_file", "folder /project", {"/path": "src/*"})
    kept.keep(gone)
    kept.keep(KeptRule("list_files", "folder /project"))
    shown = await runs.list_approvals()
    assert shown[0] == ApprovalShown("edit_file", "folder /project", {"/path": "src/*"}, "edit_file (/path like src/*)")
    assert await runs.forget_approval(gone) == shown[1:]
    assert kept.all() == (KeptRule("list_files", "folder /project"),)
    with pytest.raises(Fault, match="no such rule about 'edit_file'") as caught:
        await runs.forget_approval(gone)
    assert caught.value.status == 404
