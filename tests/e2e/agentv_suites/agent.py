"""An agent that always reports the weather, unless it is to report nothing."""

import json
import sys
from pathlib import Path

named = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
prompt = Path(named["--prompt"]).read_text()
calls = [
    {"tool": "search", "input": {"q": "weather"}, "output": "sunny"},
    {"tool": "report", "input": {"text": "sunny", "n": 2}},
]
message = {"role": "assistant", "content": "It is sunny.", "tool_calls": [] if "nothing" in prompt else calls}
told = {"output": [message], "token_usage": {"input": 5, "output": 3}}
Path(named["--output"]).write_text(json.dumps(told))
