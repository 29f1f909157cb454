"""Estimates on recorded sessions of real clients; `make clients` records the clients as they are then."""

from statistics import median

from sightline.app.configuration import configuration
from sightline.app.engine import make_embedded_model
from sightline.tokens.text_count import has_vocabulary
from tests.client_sessions import COMMANDS, FOREIGN, load_sessions, measure, measure_all


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


def test_after_five_turns_it_holds_what_a_provider_counts_by_a_vocabulary_of_others() -> None:
    """The same where what is known of every provider's vocabulary is wrong: what is learned of it makes up for that."""
    make_embedded_model(configuration(None))
    names = [name for name in FOREIGN if has_vocabulary(name)]
    sessions = load_sessions()
    unlearned = [measure(each.dialect, each.bodies[:1], name, 1_200)[0] for each in sessions for name in names]
    assert median(each.error for each in unlearned) > 0.05
    measured = [each for session in sessions for each in measure_all(session.dialect, session.bodies, names)]
    assert sum(each.holds for each in measured) >= 0.95 * len(measured)
    assert median(each.error for each in measured) <= 0.03
    assert median((each.high - each.low) / each.counted for each in measured) <= 0.1, "the band says something"
