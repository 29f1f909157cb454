import pytest
from hypothesis import given

from sightline.filters.expression import Expression
from sightline.filters.parsing import parse
from sightline.filters.writing import write_expression
from tests.filters.expressions import CHAT_TERMS, SINGLE_TERMS, joined


@pytest.mark.parametrize(
    ("text", "plainly"),
    [
        ("", ""),
        ("*", ""),
        ("!*", "!*"),
        ("m'gpt*' d<7d s>=2", "model:gpt* & age<7d & stars>=2"),
        ("(b | g) !(e i)", "(flag:blue | flag:grey) & !(error & attachments>0)"),
        ("b & e | g", "flag:blue & error | flag:grey"),
        ("session:'a b'", 'session:"a b"'),
        ('text:"say \\"hi\\"\\nnow"', 'text:"say \\"hi\\"\\nnow"'),
        ("time>90 first<500ms", "time>1min30s & first<0.5s"),
        ("status:5xx", "status>=500 & status<600"),
        ("r20 t t5 m o o5", "r20 & t & t5 & m & o & o5"),
        ("t'A > B...'", 'topic:"/A/B..."'),
        ("t'TCP/IP'", 'topic:"TCP\\/IP"'),
        ("t'wait..\\.'", 'topic:"wait..\\."'),
        ("date>=26-1-5", "date>=2026-01-05"),
    ],
)
def test_the_plain_form(text: str, plainly: str) -> None:
    assert write_expression(parse(text)) == plainly
    assert parse(plainly) == parse(text)


@given(joined(SINGLE_TERMS | CHAT_TERMS))
def test_every_expression_reads_back(expression: Expression) -> None:
    assert parse(write_expression(expression)) == expression
