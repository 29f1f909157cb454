"""The page at `/`, as plain HTML: what runs here, how to point a client at it, and what came last."""

import base64
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from sightline.server.asgi import Answer, Headers
from sightline.server.workbench.replies import GUARDED
from sightline.store.summary import Summary

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --line: #dfe2e6; --ground: #fbfcfd; --card: #fff;
  --mark: #0b68cb; --good: #18794e; --bad: #c62a2f; }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #a3a8b0; --line: #2e3238; --ground: #111316;
  --card: #191c20; --mark: #70b8ff; --good: #4cc38a; --bad: #ff9592; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 4rem; }
h1 { font-size: 1.4rem; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1rem; margin: 2rem 0 .6rem; }
p { margin: .2rem 0 0; color: var(--soft); }
code, pre { font: .86rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: .8rem 1rem; overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
ol { list-style: none; margin: 0; padding: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
li { padding: .6rem 1rem; border-top: 1px solid var(--line); display: grid; gap: 0 1rem;
  grid-template-columns: minmax(0, 1fr) auto; }
li:first-child { border-top: 0; }
li > * { min-width: 0; overflow-wrap: anywhere; }
.title { grid-column: 1 / -1; color: var(--soft); display: -webkit-box; -webkit-line-clamp: 2;
  -webkit-box-orient: vertical; overflow: hidden; }
.facts { color: var(--soft); font-size: .86rem; }
.state { font-size: .86rem; text-align: right; white-space: nowrap; }
.finished { color: var(--good); } .failed, .dropped { color: var(--bad); }
a { color: var(--mark); }
.empty { padding: 1rem; color: var(--soft); }
"""

_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Headers = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    *GUARDED,
]


def page(address: str, version: str, exchanges: Iterable[Summary]) -> Answer:
    """All of it. What others said stands in it as text and as nothing else."""
    items = "".join(map(_item, exchanges))
    listed = f"<ol>{items}</ol>" if items else '<ol><li class="empty">Nothing has passed through yet.</li></ol>'
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sightline</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>
<body><main>
<header><h1>Sightline</h1><p>Version {escape(version)}, listening at {escape(address)}</p></header>
<section aria-labelledby="use"><h2 id="use">Point a client here</h2><pre>{escape(_clients(address))}</pre></section>
<section aria-labelledby="last"><h2 id="last">The last exchanges</h2>{listed}</section>
</main></body></html>
"""
    return Answer(200, html.encode("utf-8", "replace"), list(HEADERS))


def nothing() -> Answer:
    """For whoever is not known: a blank page."""
    html = b'<!doctype html><html lang="en"><title>Sightline</title><link rel="icon" href="data:,">'
    return Answer(401, html, list(HEADERS))


def _clients(address: str) -> str:
    return (
        f"export OPENAI_BASE_URL={address}/v1\n"
        f"export ANTHROPIC_BASE_URL={address}\n"
        f"export GOOGLE_GEMINI_BASE_URL={address}\n"
        f"\n# choose the provider, label the traffic\n"
        f"export ANTHROPIC_BASE_URL={address}/p/anthropic/s/my-task"
    )


def _item(summary: Summary) -> str:
    when = datetime.fromtimestamp(summary.at, UTC)
    facts = [f"{when:%Y-%m-%d %H:%M:%S} UTC", summary.dialect, summary.provider, summary.session, _tokens(summary)]
    title = f'<span class="title">{escape(summary.title)}</span>' if summary.title else ""
    link = f'<a href="/api/exchanges/{escape(summary.id)}">{escape(summary.model or summary.id)}</a>'
    state = escape(summary.state)
    return (
        f'<li>{link}<span class="state {state}">{escape(_outcome(summary))}</span>'
        f'<span class="facts">{escape(" · ".join(filter(None, facts)))}</span>{title}</li>'
    )


def _outcome(summary: Summary) -> str:
    told = (summary.state, str(summary.status or ""), summary.fault)
    return " ".join(filter(None, told)) + (f", {summary.elapsed:.2f} s" if summary.elapsed else "")


def _tokens(summary: Summary) -> str:
    if summary.input_tokens is None and summary.output_tokens is None:
        return ""
    return f"{summary.input_tokens or 0:,} in, {summary.output_tokens or 0:,} out"
