"""Estimate how many tokens a request has, on this machine and without a key.

Run it as `python examples/count.py [MODEL]`.
"""

import sys
from pathlib import Path

import sightline

model = sys.argv[1] if len(sys.argv) > 1 else "openai/gpt-4o"
body = Path(__file__).with_name("chat-request.json").read_bytes()
estimate = sightline.count_tokens(body, model=model, dialect="openai-chat")

print(f"{estimate.tokens} tokens, between {estimate.low} and {estimate.high} ({estimate.how})")
