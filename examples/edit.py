"""Change two values of a request and nothing else: every other byte stays as it was.

Run it as `python examples/edit.py`.
"""

from pathlib import Path

import sightline

data = Path(__file__).with_name("chat-request.json").read_bytes()
edited = sightline.WireDocument(data).set("/temperature", 0).set("/messages/0/content", "Answer in one word.")

print(edited.get("/messages/0/content"))
print(f"{len(data)} bytes before, {len(edited.data)} after")
