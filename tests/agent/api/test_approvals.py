"""What is allowed for all runs, as the page sees it and takes it back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.api.runs import Approvals, ApprovalShown, approval_calls
from sightline.agent.core.approval import ApprovalRule
from sightline.agent.service.approvers import KeptRule, KeptRules
from sightline.errors import Fault
from sightline.web.routes import ApiCall


def called(approvals: Approvals, path: str, body: Any = None) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    handler = approval_calls(approvals)[path]["GET" if body is None else "POST"]

    async def story() -> Any:
        return await handler(ApiCall((), "", receive))

    return asyncio.run(story())


def test_rules_are_seen_and_taken_back(tmp_path: Path) -> None:
    approvals = Approvals(KeptRules(tmp_path))
    assert called(approvals, "approvals") == []
    approvals.keep("edit_file", "folder /project", ApprovalRule("edit_file", "allow", {"/path": "src/*"}))
    approvals.keep("list_files", "folder /project", ApprovalRule("list_files", "allow"))
    shown = called(approvals, "approvals")
    assert shown[0] == ApprovalShown("edit_file", "folder /project", {"/path": "src/*"}, "edit_file (/path like src/*)")
    gone = {"tool": "edit_file", "place": "folder /project", "arguments": {"/path": "src/*"}}
    assert called(approvals, "approvals/forget", gone) == shown[1:]
    assert KeptRules(tmp_path).all() == (KeptRule("list_files", "folder /project"),)
    with pytest.raises(Fault, match="no such rule about 'edit_file'") as caught:
        called(approvals, "approvals/forget", gone)
    assert caught.value.status == 404


def test_a_tool_that_comes_from_nowhere_gets_no_rule(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="it is not known where the tool 'x' comes from"):
        Approvals(KeptRules(tmp_path)).keep("x", "", ApprovalRule("x", "allow"))
