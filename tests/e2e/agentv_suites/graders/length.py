"""Whether an answer is short; of output it takes words and messages."""

import json
import sys

told = json.load(sys.stdin)
output = told.get("output")
text = output if isinstance(output, str) else (output[-1]["content"] if output else "")
is_short = len(text) < 200
checks = [{"text": "is short", "passed": is_short}]
sys.stdout.write(json.dumps({"score": float(is_short), "assertions": checks}))
