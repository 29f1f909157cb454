"""What graders say."""

import msgspec
import pytest

from sightline.evals.core.result import Check, Score


def test_scores_hold_scores() -> None:
    inner = Score(name="a", type="contains", verdict="fail", score=0.0, checks=(Check("has x", passed=False),))
    outer = Score(name="all", type="composite", verdict="fail", score=0.0, scores=(inner,))
    assert msgspec.json.decode(msgspec.json.encode(outer), type=Score) == outer


def test_a_verdict_is_one_of_four() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"name":"a","type":"b","verdict":"maybe"}', type=Score)
