"""Translate a request with the library and see what the other dialect cannot carry.

Run it as `python examples/translate.py [FILE]`; without a file it takes the chat request beside it.
"""

import sys
from pathlib import Path

from sightline.dialects.translate import translate_request

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("chat-request.json")
translated = translate_request(path.read_bytes(), "openai-chat", "anthropic")

print(translated.data.decode())
for loss in translated.report.losses:
    print(f"lost {loss.pointer}: {loss.what} ({loss.why})", file=sys.stderr)
for addition in translated.report.additions:
    print(f"added {addition.pointer}: {addition.what} ({addition.why})", file=sys.stderr)
