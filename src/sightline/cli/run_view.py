"""A run on the terminal while it goes on: rounds, calls and results on stderr, and of the words the last on stdout.

Which words are the last is known when a reply has no calls. In a pipe the words of a round therefore wait for its end;
on a terminal, where nobody takes stdout for the answer alone, they are shown as they come.
"""

import sys
from collections.abc import Callable, Sequence

from sightline.agent.core.facts import Remarked, RequestStarted, RunEnded, RunFact, ToolFinished
from sightline.agent.core.rounds import FinishedRun, Round
from sightline.agent.core.steps import Replied
from sightline.agent.service.shapes import RunShown
from sightline.cli.answer import AnswerView
from sightline.cli.call_lines import call_line, fold, progress_line, record_lines, result_lines
from sightline.cli.terminal import is_terminal, say, write
from sightline.model.events import FrameBroken, PartReceived, StreamEvent, ThinkingReceived
from sightline.model.exchange import AttemptStarted
from sightline.model.parts import Refusal, Text
from sightline.model.reply import Reply
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait


class RunView:
    """Shows one run. `rounds` tells those that are over; with `is_quiet` only notes are said, and with `is_silent` the
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
        """The run goes on from here; what an earlier process has shown is not shown again."""
        for each in run.rounds[-1:]:
            self._round = each.number
            self._names = {call.key: call.name for call in each.calls}
            self._shown = {call.key for call in each.calls if call.result is not None}

    def on_event(self, event: StreamEvent) -> None:
        """One more event of an answer."""
        if self._is_live:
            self._has_spoken = True
            self._answer.on_event(event)
        elif isinstance(event, ThinkingReceived | PartReceived | FrameBroken):
            self._answer.on_event(event)

    def on_noted(self, noted: FactEntry) -> None:
        """One more fact of an exchange: attempts are told as they are without tools."""
        if isinstance(noted.fact, AttemptStarted):
            self._answer.on_attempt(noted.fact)

    def on_pause(self, wait: Wait) -> None:
        """The next request waits for the provider's limits."""
        self._answer.on_pause(wait)

    def on_progress(self, key: str, words: str) -> None:
        """How far a tool is."""
        self._say(progress_line(self._names.get(key, key), words))

    def on_fact(self, fact: RunFact) -> None:
        """One more fact of the run."""
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
        """The answer, where it is not on the screen already."""
        if not ended.rounds or self._is_silent or self._has_spoken:
            return
        said = (part.text for part in ended.rounds[-1].reply.choice.parts if isinstance(part, Text | Refusal))
        write("".join(said).encode("utf-8", "replace"))

    def finish(self) -> None:
        """Nothing more comes; the terminal's next line is free."""
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
        """What is known of a round only when it is over: the calls that did not run, and what was amended."""
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
