"""Estimates on recorded sessions of real clients; `make clients` records the clients as they are then."""

from statistics import median

from tests.client_sessions import COMMANDS, load_sessions, measure_all


def test_after_five_turns_the_band_holds_what_a_provider_counts() -> None:
    """In 95 of 100 requests, with a median error of 3 %: for Codex, Claude Code, Gemini CLI and opencode, over three
    APIs, whatever the provider says unseen, and for Anthropic with each of three vocabularies."""
    sessions = load_sessions()
    assert {session.client.partition(" ")[0] for session in sessions} == {"claude", "codex", "gemini", "opencode"}
    assert all(len(session.bodies) > len(COMMANDS) for session in sessions)
    measured = [each for session in sessions for each in measure_all(session.dialect, session.bodies)]
    assert len(measured) >= 100
    assert sum(each.holds for each in measured) >= 0.95 * len(measured)
    assert median(each.error for each in measured) <= 0.03
