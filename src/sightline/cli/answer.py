"""Shows an answer on the terminal while it arrives: its text on stdout, everything else on stderr."""

import argparse
import sys

from sightline.catalog.facts import Prices
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import harmless, is_terminal, say, write
from sightline.model.events import (
    FrameBroken,
    PartReceived,
    RefusalReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
)
from sightline.model.exchange import AttemptStarted
from sightline.model.parts import Text
from sightline.model.reply import Reply, reply_json
from sightline.model.report import Report
from sightline.tokens.cost import cost_of
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait
from sightline.wire.jsontext import encode

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"

CUT_SHORT = "note: the answer was truncated at its token limit; allow more with --max-tokens"
CUT_BEFORE_TEXT = (
    "note: there is no answer: the limit of tokens was reached before any text; allow more with --max-tokens, or ask "
    "for less thinking with --effort"
)


class AnswerView:
    """Shows an answer. In a pipe, stdout gets the model's exact text; a terminal gets no control characters. With
    `is_silent`, events are not shown: the whole reply is printed at the end."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._is_terminal = is_terminal(sys.stdout)
        self._shows_thinking = is_terminal(sys.stderr)
        self._is_thinking = False
        self._last = ""
        self._pending_surrogate = ""

    def on_event(self, event: StreamEvent) -> None:
        match event:
            case _ if self._is_silent:
                pass
            case TextReceived(text=text, choice=0) | RefusalReceived(text=text, choice=0):
                self._stop_thinking()
                self._append(text)
            case ThinkingReceived(text=text, choice=0):
                if self._shows_thinking and text:
                    say(text, end="", style="" if self._is_thinking else _DIM)
                    self._is_thinking = True
            case PartReceived(value=value):
                self._stop_thinking()
                say(f"note: the answer contains a part that is not text ({type(value).__name__.lower()})")
            case FrameBroken(message=message):
                say(f"note: a piece of the answer cannot be read: {message}")
            case _:
                pass

    def on_attempt(self, attempt: AttemptStarted) -> None:
        """Report an attempt after the first."""
        if attempt.number > 1:
            why = f"{attempt.reason}: {attempt.detail}" if attempt.detail else attempt.reason
            say(f"note: attempt {attempt.number} after {attempt.waited:.1f} s ({why})")

    def on_pause(self, wait: Wait) -> None:
        """Report a wait for the provider's limits."""
        why = "the provider asked for it" if wait.reason == "asked" else f"the limit of {wait.limit} is used up"
        say(f"note: waiting {wait.seconds:.1f} s: {why}")

    def finish(self) -> None:
        self._stop_thinking()
        if self._pending_surrogate:
            self._pending_surrogate = ""
            self._append("\ufffd")
        if self._is_terminal and self._last and not self._last.endswith("\n"):
            write(b"\n")

    def _append(self, text: str) -> None:
        text, self._pending_surrogate = self._pending_surrogate + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":  # a lone surrogate, whose other half is still to come
            text, self._pending_surrogate = text[:-1], text[-1]
        if text:
            self._last = text
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            write((harmless(whole) if self._is_terminal else whole).encode(), ends_line=False)

    def _stop_thinking(self) -> None:
        if self._is_thinking:
            self._is_thinking = False
            say("", style=_PLAIN)


def print_ending(arguments: argparse.Namespace, reply: Reply, line: str) -> None:
    """Print the whole reply with `--json`, and its summary in one line unless `--quiet`."""
    if arguments.json:
        write(encode(reply_json(reply)) + b"\n")
    if not arguments.quiet:
        say(line)


def exit_code_of(reply: Reply, *, is_replay: bool = False) -> int:
    """The exit code. An incomplete answer is reported and is not a success. A replay has no option to allow more
    tokens. Raises the reply's fault if it has one."""
    if reply.fault is not None:
        raise reply.fault
    match reply.choice.finish:
        case "length" if is_replay:
            say("note: the answer was truncated at its token limit")
        case "length":
            has_words = any(isinstance(part, Text) and part.text.strip() for part in reply.choice.parts)
            say(CUT_SHORT if has_words else CUT_BEFORE_TEXT)
            return 0 if has_words else EXIT_FAILED
        case "content_filter":
            say("note: the provider's filter stopped the answer")
            return EXIT_FAILED
        case "tool_calls":
            say("note: the model called a tool; --json shows the call")
        case _ if not reply.choice.parts and not is_replay:
            say("note: the model's answer is empty")
        case _:
            pass
    return 0


def summary(reply: Reply, *, name: str, prices: Prices | None, estimate: Estimate | None, seconds: float) -> str:
    """One line: the model, tokens, cost and time."""
    return f"{name}: {', '.join([*_counts(reply, estimate), *_money(reply, prices), f'{seconds:.2f} s'])}"


def tell_losses(report: Report) -> None:
    """Report what is left out of a request because its dialect cannot express it."""
    for loss in report.losses:
        say(f"note: {loss.what} is not sent: {loss.why}")


def tell_additions(report: Report) -> None:
    """Report what is added to a request because its dialect requires it."""
    for addition in report.additions:
        if addition.severity != "identity":
            say(f"note: {addition.pointer}: {addition.what} ({addition.why})")


def band(estimate: Estimate) -> str:
    """An estimate for the user: a number, or a range."""
    return f"{estimate.tokens:,}" if estimate.is_exact else f"{estimate.low:,}–{estimate.high:,}"


def _counts(reply: Reply, estimate: Estimate | None) -> list[str]:
    usage = reply.usage
    if usage is None or usage.input_tokens is None:
        return [f"{band(estimate)} tokens in (estimated)"] if estimate is not None else ["no usage reported"]
    finer = [
        f"{count:,} {what}"
        for count, what in ((usage.cached_tokens, "cached"), (usage.cache_write_tokens, "written to the cache"))
        if count
    ]
    if estimate is not None:
        finer.append(f"{band(estimate)} estimated")
    about = "about " if usage.is_estimated else ""
    counts = [f"{about}{usage.input_tokens:,} tokens in" + (f" ({', '.join(finer)})" if finer else "")]
    if usage.output_tokens is not None:
        thought = f" ({usage.reasoning_tokens:,} thinking)" if usage.reasoning_tokens else ""
        counts.append(f"{about}{usage.output_tokens:,} out{thought}")
    return counts


def _money(reply: Reply, prices: Prices | None) -> list[str]:
    cost = None if reply.usage is None else cost_of(reply.usage, prices)
    if cost is None:
        return []
    if cost.dollars == 0:
        return ["free"]
    amount = f"${cost.dollars:.2f}" if cost.dollars >= 1 else f"${cost.dollars:.6f}".rstrip("0")
    looked = f" at prices of {prices.as_of}" if prices is not None and prices.as_of else ""
    about = "about " if reply.usage is not None and reply.usage.is_estimated else "at most " if cost.is_bound else ""
    return [f"{about}{amount}{looked}"]
