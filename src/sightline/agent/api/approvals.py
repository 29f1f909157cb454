"""What a person has allowed for all runs, over the API: seen, added to when a call is decided on, and taken back."""

import msgspec

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.service.toolsets import KeptRule, KeptRules
from sightline.errors import Code, Fault
from sightline.web.bodies import read_body
from sightline.web.routes import ApiCall, Calls


class ApprovalShown(msgspec.Struct, frozen=True):
    """Calls of this tool of this place run unasked where their arguments fit the patterns; `words` say it."""

    tool: str
    place: str
    arguments: dict[str, str]
    words: str


class ApprovalGone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule that is not to hold any more."""

    tool: str
    place: str
    arguments: dict[str, str] = {}


class Approvals:
    """Answers the calls below `/api/approvals`; the rules are those of the command line, in the same file."""

    def __init__(self, kept: KeptRules) -> None:
        self._kept = kept

    def list_all(self) -> list[ApprovalShown]:
        """All of them."""
        return [ApprovalShown(each.tool, each.place, each.arguments, each.words) for each in self._kept.all()]

    def keep(self, tool: str, place: str, rule: ApprovalRule) -> None:
        """Remember that calls of a tool may run whose arguments fit this rule's patterns."""
        if not place:
            message = f"it is not known where the tool {tool!r} comes from"
            raise Fault(Code.USAGE, message, hint="Allow it for this run.", status=409)
        self._kept.keep(KeptRule(tool, place, rule.arguments))

    def forget(self, gone: ApprovalGone) -> list[ApprovalShown]:
        """Ask again from now on; runs that are under way keep what they began with."""
        if not self._kept.forget(KeptRule(gone.tool, gone.place, gone.arguments)):
            hint = "GET /api/approvals lists them."
            raise Fault(Code.USAGE, f"no such rule about {gone.tool!r} is kept", hint=hint, status=404)
        return self.list_all()


def approval_calls(approvals: Approvals) -> Calls:
    """All calls below `/api/approvals`."""

    async def list_approvals(_call: ApiCall) -> object:
        return approvals.list_all()

    async def forget(call: ApiCall) -> object:
        return approvals.forget(await read_body(call.receive, ApprovalGone))

    return {"approvals": {"GET": list_approvals}, "approvals/forget": {"POST": forget}}
