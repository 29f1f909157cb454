"""HTTP calls for runs with tools: show, decide, stop and resume them, and manage what the user has allowed for all
runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar, assert_never
from urllib.parse import unquote

import msgspec

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.service.approvers import Interrupted, SavedRule, SavedRules
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.run_view import ApprovePending, MidFlightPending, RunBrief, RunShown
from sightline.agent.service.runner import Runner
from sightline.agent.tools.opening import OpenToolsets, Toolsets
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.transport.waiting import wait_started
from sightline.web.bodies import Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler


class ApprovalShown(msgspec.Struct, frozen=True):
    """Calls of this tool from this place run without asking if their arguments match the patterns. `words` describes
    the rule."""

    tool: str
    place: str
    arguments: dict[str, str]
    words: str


W = TypeVar("W", bound=msgspec.Struct)

MOST_RUNS = 500
_LOG = logging.getLogger("sightline.runs")


class AllowedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="decision", tag="allowed"):
    """Run the call, with these arguments if they were edited. `rule` applies to the rest of the run and, with `always`,
    to all other runs of this tool."""

    arguments: dict[str, Json] | str | None = None
    rule: ApprovalRule | None = None
    always: bool = False


class DeniedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="decision", tag="denied"):
    """Do not run the call, and tell the model why."""

    reason: str = ""
    rule: ApprovalRule | None = None


class AnsweredCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="decision", tag="answered"):
    """Do not run the call; this is its result."""

    text: str
    is_error: bool = False


CallDecision: TypeAlias = AllowedCall | DeniedCall | AnsweredCall


class DecisionsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decisions, by the key of the call."""

    decisions: dict[str, CallDecision]


class ConfirmWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the limit is raised."""

    goes_on: bool


class StopWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stop at once, or after the work in progress has ended."""

    now: bool = False


class RunResumeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with calls that were interrupted. The user is asked about those that are not named."""

    mid_flight: dict[str, Interrupted] = {}


class StepWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether each request is held from now on."""

    on: bool


ResumeForChat: TypeAlias = Callable[[str, str, str], Awaitable[bool]]
"""Resumes a chat pair's run so that it becomes the pair's answer. False if the pair cannot take it."""


MAIN_CHAT = "main"
"""The chat of a run whose origin names a pair but no chat, because it began when there was only one chat."""


class Runs:
    """Answers the calls below `/api/runs`, and those below `/api/approvals`, which manage the same file of rules as the
    command line. Runs that are resumed here run in the background; a run that was started for a pair of a chat is
    resumed there, through `joining`. A call that changes a run gets the run as it is shown now."""

    def __init__(self, runner: Runner, toolsets: Toolsets, joining: ResumeForChat, kept: SavedRules) -> None:
        self._runner = runner
        self._toolsets = toolsets
        self._joining = joining
        self._kept = kept
        self._tasks: set[asyncio.Task[FinishedRun]] = set()

    async def list_runs(self, query: Query) -> list[RunBrief]:
        return await self._runner.list_runs(min(query.number("limit", 50), MOST_RUNS))

    async def show(self, run: str) -> RunShown:
        return await self._runner.show(run)

    async def decide(self, shown: RunShown, body: DecisionsWanted) -> None:
        """Decide about some or all of the calls that wait."""
        await self._store_rules(shown, body)
        self._runner.questions.decide(shown.id, {key: _decision(each) for key, each in body.decisions.items()})

    async def confirm(self, shown: RunShown, body: ConfirmWanted) -> None:
        """Raise a limit, or let it end the run."""
        self._runner.questions.confirm_with(shown.id, goes_on=body.goes_on)

    async def stop(self, shown: RunShown, body: StopWanted) -> None:
        """Interrupt a run, so that it can be resumed."""
        self._runner.leave(shown.id, now=body.now)

    async def step(self, shown: RunShown, body: StepWanted) -> None:
        """Hold each request from now on, or stop holding them."""
        self._runner.step(shown.id, is_on=body.on)

    async def resume(self, shown: RunShown, body: RunResumeWanted) -> None:
        """Resume a run that its process has left, or answer its question about interrupted calls."""
        if shown.state == "waiting" and isinstance(shown.pending, MidFlightPending):
            self._runner.questions.tell(shown.id, body.mid_flight)
            return
        tools = await self._toolsets.open_toolsets(await self._toolset_names(shown.id))
        if shown.state in ("running", "waiting"):
            hint = "Only an interrupted run can be resumed."
            raise Fault(Code.USAGE, f"the run {shown.id} is under way", hint=hint, status=409)
        self._runner.questions.tell(shown.id, body.mid_flight)
        try:
            pair, chat = shown.origin.get("pair"), str(shown.origin.get("chat", MAIN_CHAT))
            if not (isinstance(pair, str) and await self._joining(chat, pair, shown.id)):
                await self._resume_in_background(shown.id, tools)
        except Fault:
            self._runner.questions.tell(shown.id, {})
            raise

    async def list_approvals(self) -> list[ApprovalShown]:
        """What the user has allowed for all runs."""
        return [ApprovalShown(each.tool, each.place, each.arguments, each.words) for each in self._kept.all()]

    async def forget_approval(self, rule: SavedRule) -> list[ApprovalShown]:
        """Ask about such calls again from now on. Runs in progress keep the rules that they began with."""
        if not self._kept.forget(rule):
            hint = "GET /api/approvals lists them."
            raise Fault(Code.USAGE, f"no such rule about {rule.tool!r} is kept", hint=hint, status=404)
        return await self.list_approvals()

    async def close(self) -> None:
        """Leave all runs, so that they can be resumed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.leave_all()

    async def _resume_in_background(self, run: str, tools: OpenToolsets) -> None:
        """Resume the run in a task, and return once it is in progress."""
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()
        company = RunParticipants(tools, self._runner.questions, tools.hooks)
        task = loop.create_task(self._runner.resume(run, company, lambda: begun.set_result(None)))
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        await wait_started(begun, task)

    async def _store_rules(self, shown: RunShown, body: DecisionsWanted) -> None:
        """Remember the rules that apply to other runs, but only for tools whose call waits for a decision."""
        waiting = shown.pending.calls if isinstance(shown.pending, ApprovePending) else ()
        names = {call.key: call.name for call in waiting}
        wanted = [
            (names[key], each.rule)
            for key, each in body.decisions.items()
            if isinstance(each, AllowedCall) and each.always and each.rule is not None and key in names
        ]
        if not wanted:
            return
        places = (await self._toolsets.open_toolsets(await self._toolset_names(shown.id))).places
        for name, rule in wanted:
            if name not in places:
                message = f"it is not known where the tool {name!r} comes from"
                raise Fault(Code.USAGE, message, hint="Allow it for this run.", status=409)
            self._kept.keep(SavedRule(name, places[name], rule.arguments))

    async def _toolset_names(self, run: str) -> list[str]:
        """The toolsets of the run. Raises a fault if its tools did not come from the configuration."""
        names = (await self._runner.began(run)).origin.get("toolsets")
        if not isinstance(names, list) or not names:
            message = f"the run {run} was given its tools on the command line"
            raise Fault(Code.USAGE, message, hint=f"Resume it there: sightline resume {run}", status=409)
        return [str(name) for name in names]

    def _on_task_done(self, task: "asyncio.Task[FinishedRun]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.warning("a resumed run has stopped: %s", error)  # its facts show how far it got


def run_calls(runs: Runs) -> Calls:
    """All calls below `/api/runs` and `/api/approvals`."""

    async def forget_approval(call: ApiCall) -> list[ApprovalShown]:
        return await runs.forget_approval(await read_body(call.receive, SavedRule))

    return {
        "runs": {"GET": lambda call: runs.list_runs(Query(call.query))},
        "runs/*": {"GET": lambda call: runs.show(_run(call))},
        "runs/*/decide": {"POST": _post_handler(DecisionsWanted, runs.decide, runs.show)},
        "runs/*/confirm": {"POST": _post_handler(ConfirmWanted, runs.confirm, runs.show)},
        "runs/*/stop": {"POST": _post_handler(StopWanted, runs.stop, runs.show)},
        "runs/*/step": {"POST": _post_handler(StepWanted, runs.step, runs.show)},
        "runs/*/resume": {"POST": _post_handler(RunResumeWanted, runs.resume, runs.show)},
        "approvals": {"GET": lambda _call: runs.list_approvals()},
        "approvals/forget": {"POST": forget_approval},
    }


def _run(call: ApiCall) -> str:
    return unquote(call.name)


def _post_handler(
    kind: type[W], change: Callable[[RunShown, W], Awaitable[None]], show: Callable[[str], Awaitable[RunShown]]
) -> Handler:
    """Change a run by a body of this kind, and answer with what it is then."""

    async def handle(call: ApiCall) -> RunShown:
        run, body = _run(call), await read_body(call.receive, kind)
        await change(await show(run), body)
        return await show(run)

    return handle


def _decision(body: CallDecision) -> Decision:
    match body:
        case AllowedCall(arguments, rule):
            return Allowed(arguments, rule)
        case DeniedCall(reason, rule):
            return Denied(reason, rule)
        case AnsweredCall(text, is_error):
            return AnsweredByHand((Text(text),), is_error=is_error)
        case unreachable:
            assert_never(unreachable)
