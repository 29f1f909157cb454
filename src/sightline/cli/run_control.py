"""Drives a run from a terminal: shows it, leaves it on Ctrl-C, and returns its exit code."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from sightline.agent.core.facts import Remarked, RequestStarted, RunEnded, RunFact, ToolFinished
from sightline.agent.core.limits import total_usage
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.service.approvers import Approver
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.run_view import RunShown
from sightline.agent.service.runner import Runner
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.tools import Tools
from sightline.cli.answer import CUT_BEFORE_TEXT, CUT_SHORT, AnswerView
from sightline.cli.keyboard import Keyboard
from sightline.cli.program import EXIT_FAILED, EXIT_INTERRUPTED
from sightline.cli.terminal import is_terminal, many, money, print_fault, say, write
from sightline.errors import Code, Fault
from sightline.model.events import FrameBroken, PartReceived, StreamEvent, ThinkingReceived
from sightline.model.exchange import AttemptStarted
from sightline.model.json import JsonObject
from sightline.model.parts import Refusal, Text
from sightline.model.reply import Reply
from sightline.platform.processes import ENDING, handle_signals
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait
from sightline.wire.jsontext import encode

LONGEST_LINE = 160
MOST_LINES = 4

_OUTCOME_LABELS = {
    "refused": "not run, its arguments are invalid",
    "denied": "denied",
    "answered": "answered by hand",
    "cancelled": "not run",
    "limit": "not run",
    "cut": "not run, the reply was truncated",
}
_DENIED = {"hook": "denied by a hook", "rule": "denied by a rule", "nobody": "denied, no one is there to approve it"}


def call_line(name: str, arguments: JsonObject | str) -> str:
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    return f"→ {name} {clip(' '.join(text.split()))}".rstrip()


def result_lines(name: str, outcome: ToolOutcome | None, *, how: str = "") -> str:
    if outcome is None:
        return f"← {name}{f' ({how})' if how else ''}"
    how = how or ("error" if outcome.is_error else "")
    media = sum(not isinstance(part, Text) for part in outcome.parts)
    more = f"[{media} part{'s' if media > 1 else ''} that {'are' if media > 1 else 'is'} not text]" if media else ""
    body = fold("\n".join(filter(None, (words_of(outcome), more))))
    return f"← {name}{f' ({how})' if how else ''}{f': {body}' if body else ''}"


def record_lines(record: CallRecord) -> str:
    """A finished call and its outcome."""
    how = _DENIED.get(record.denied_by or "", _OUTCOME_LABELS.get(record.fate, ""))
    return result_lines(record.name, record.outcome, how=how)


def fold(text: str) -> str:
    """The first lines of a text, and how many more there are."""
    lines = text.strip("\n").split("\n")
    shown = [clip(line.rstrip()) for line in lines[:MOST_LINES]]
    missing = len(lines) - len(shown)
    if missing:
        shown.append(f"… {missing} more line{'s' if missing > 1 else ''}")
    return "\n  ".join(shown)


def clip(line: str, most: int = LONGEST_LINE) -> str:
    """A line, shortened, and how many more characters it has."""
    return line if len(line) <= most else f"{line[:most]}… {len(line) - most:,} more characters"


class RunView:
    """Shows one run. `rounds` returns the finished rounds. With `is_quiet` only notes are shown; with `is_silent` the
    answer is not printed either."""

    def __init__(self, rounds: Callable[[], Sequence[Round]], *, is_quiet: bool, is_silent: bool) -> None:
        self._rounds = rounds
        self._is_quiet = is_quiet
        self._is_silent = is_silent
        self._is_live = is_terminal(sys.stdout) and not is_silent
        self._answer = AnswerView()
        self._round = 0
        self._names: dict[str, str] = {}
        self._shown: set[str] = set()
        self._has_spoken = False

    def resume(self, run: RunShown) -> None:
        """Continue a run; what an earlier process showed is not shown again."""
        for each in run.rounds[-1:]:
            self._round = each.number
            self._names = {call.key: call.name for call in each.calls}
            self._shown = {call.key for call in each.calls if call.result is not None}

    def on_event(self, event: StreamEvent) -> None:
        if self._is_live:
            self._has_spoken = True
            self._answer.on_event(event)
        elif isinstance(event, ThinkingReceived | PartReceived | FrameBroken):
            self._answer.on_event(event)

    def on_recorded(self, entry: FactEntry) -> None:
        """Show a fact of an exchange: only attempts, as without tools."""
        if isinstance(entry.fact, AttemptStarted):
            self._answer.on_attempt(entry.fact)

    def on_pause(self, wait: Wait) -> None:
        """Report that the next request waits for the provider's limits."""
        self._answer.on_pause(wait)

    def on_progress(self, key: str, words: str) -> None:
        self._say(f"· {self._names.get(key, key)}: {clip(' '.join(words.split()))}")

    def on_fact(self, fact: RunFact) -> None:
        match fact:
            case RequestStarted(number):
                self._close_round()
                self._say(f"round {number}")
                self._round, self._has_spoken = number, False
            case Replied(reply):
                self._show_reply(reply)
            case ToolFinished(key, outcome):
                self._shown.add(key)
                self._say(result_lines(self._names.get(key, key), outcome))
            case Remarked(words):
                say(f"note: {words}")
            case RunEnded():
                self._close_round()
            case _:
                pass

    def show_ending(self, ended: FinishedRun) -> None:
        """Print the answer if it is not on the screen already."""
        if not ended.rounds or self._is_silent or self._has_spoken:
            return
        texts = (part.text for part in ended.rounds[-1].reply.choice.parts if isinstance(part, Text | Refusal))
        write("".join(texts).encode("utf-8", "replace"))

    def finish(self) -> None:
        """End the output, with the cursor at the start of a line."""
        self._answer.finish()

    def _show_reply(self, reply: Reply) -> None:
        self._answer.finish()
        self._answer = AnswerView()
        calls = reply.choice.tool_calls
        words = "".join(part.text for part in reply.choice.parts if isinstance(part, Text))
        if calls and words.strip() and not self._has_spoken:
            self._say(fold(words))
        for place, call in enumerate(calls, 1):
            self._names[f"{self._round}.{place}"] = call.name
            self._say(call_line(call.name, call.arguments))

    def _close_round(self) -> None:
        """Show what is known only at the end of a round: calls that did not run, and amended results."""
        for each in self._rounds():
            if each.number != self._round:
                continue
            for record in each.calls:
                if record.key not in self._shown:
                    self._say(record_lines(record))
            for amendment in each.amendments:
                say(f"note: {amendment.what}: {amendment.why}")
        self._round = 0

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            say(text)


class Driving:
    """Drives one run. The first Ctrl-C lets the current step finish, the second aborts it; either way the run can be
    resumed. While an editor has the terminal, Ctrl-C belongs to the editor. With `--json` the whole run is printed at
    its end; with `--json` or `is_silent`, the answer is not printed on its own."""

    def __init__(
        self,
        runner: Runner,
        run: str,
        keyboard: Keyboard | None,
        arguments: argparse.Namespace,
        *,
        title: str,
        is_silent: bool = False,
    ) -> None:
        self._runner = runner
        self._run = run
        self.keyboard = keyboard
        self._title = title
        self._is_quiet: bool = arguments.quiet
        self._is_json: bool = arguments.json
        self._has_begun = False
        self._is_left = False
        self._aborted_by: signal.Signals | None = None
        self.view = RunView(lambda: runner.rounds(run), is_quiet=self._is_quiet, is_silent=self._is_json or is_silent)

    def on_fact(self, fact: RunFact) -> None:
        if not self._has_begun and not self._is_quiet:
            say(self._title)
        self._has_begun = True
        self.view.on_fact(fact)

    def participants(self, tools: Tools, approver: Approver, hooks: Hooks | None) -> RunParticipants:
        """The participants of this run: these, and the view that shows it."""
        view = self.view
        listeners = (view.on_event, view.on_recorded, self.on_fact, view.on_pause, view.on_progress)
        return RunParticipants(tools, approver, hooks, *listeners)

    def leave(self) -> None:
        """Stop after the current step, so that the run can be resumed."""
        self._is_left = True
        self._runner.leave(self._run, reason="interrupted")

    async def through(self, work: Coroutine[object, object, FinishedRun]) -> int:
        """Drive the run to its end and return the exit code."""
        task = asyncio.get_running_loop().create_task(work)
        try:
            aborting = {each: partial(self._abort, task, each) for each in ENDING}
            with handle_signals(aborting | {signal.SIGINT: partial(self._on_interrupt, task)}):
                ended = await task
        except asyncio.CancelledError:
            if self._aborted_by is None:
                raise
            return self._exit_unfinished()
        except Fault as fault:
            if not self._is_left or fault.code is not Code.CANCELLED:
                raise
            return self._exit_unfinished()
        finally:
            self.view.finish()
        return await self._finish(ended)

    def _on_interrupt(self, task: "asyncio.Task[FinishedRun]") -> None:
        if self.keyboard is not None and self.keyboard.is_lent:
            return
        if self._is_left or not self._has_begun:
            self._abort(task, signal.SIGINT)
            return
        say("\nstopping after this step; Ctrl-C again stops at once")
        with suppress(Fault):  # it has just ended
            self.leave()

    def _abort(self, task: "asyncio.Task[FinishedRun]", by: signal.Signals) -> None:
        self._aborted_by = by
        with suppress(Fault):  # it has not begun, or has just ended
            self._runner.cancel_because(self._run, "interrupted")
        task.cancel()

    def _exit_unfinished(self) -> int:
        if self._has_begun:
            say(f"the run is saved; resume it: sightline resume {self._run}")
        # Like shells, add 128 to the number of the signal.
        return EXIT_INTERRUPTED if self._aborted_by in (None, signal.SIGINT) else 128 + self._aborted_by

    async def _finish(self, ended: FinishedRun) -> int:
        if self._is_json:
            write(encode(msgspec.to_builtins(await self._runner.show(self._run))) + b"\n")
        self.view.show_ending(ended)
        if not self._is_quiet:
            began = await self._runner.began(self._run)
            say(summary(ended, f"{began.provider}/{began.request.model}"))
        return _exit_code(ended)


def summary(ended: FinishedRun, name: str) -> str:
    """One line: the model, rounds and calls, cost and time."""
    usage, spent = total_usage(each.usage for each in ended.rounds), ended.spent
    figures = [many(len(ended.rounds), "round"), many(spent.tool_calls, "tool call")]
    figures += [
        f"{'about ' if spent.is_estimated else ''}{count:,} {what}"
        for count, what in ((usage.input_tokens, "tokens in"), (usage.output_tokens, "out"))
        if count is not None
    ]
    cost = spent.known_cost
    known = "cost unknown" if cost is None else "free" if cost == 0 else money(cost, is_estimated=spent.is_estimated)
    figures.append(known)
    return f"{name}: {', '.join(figures)}, {spent.seconds:.2f} s"


def _exit_code(ended: FinishedRun) -> int:
    """The exit code. A run without an answer is not a success."""
    fault = None if ended.reply is None else ended.reply.fault
    match ended.why:
        case "failed" if fault is not None:
            if fault.code is not Code.PERMISSION or fault.status is not None:
                raise fault
            print_fault(fault)  # a hook denied it; no provider has failed
            return EXIT_FAILED
        case "answered" | "refusal":
            return 0
        case "length":
            has_words = bool(ended.rounds and ended.rounds[-1].text.strip())
            say(CUT_SHORT if has_words else CUT_BEFORE_TEXT)
            return 0 if has_words else EXIT_FAILED
        case "content_filter":
            say("note: the provider's filter stopped the answer")
        case "limit":
            words = "a limit is reached" if ended.reached is None else ended.reached.words
            say(f"note: the run ended without an answer: {words}")
        case "cancelled" | "failed":
            say("note: the run was stopped")
    return EXIT_FAILED
