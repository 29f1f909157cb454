"""What reading, passing, editing, translating and stream decoding cost, as ratios to the bare JSON work."""

from collections.abc import Callable
from functools import partial

import msgspec

from bench import documents, streams
from bench.timing import medians, milliseconds, ratio, table
from sightline.dialects.registry import dialect
from sightline.dialects.translate import translate_request
from sightline.wire import SseDecoder, WireDocument

DIALECTS = list(documents.TELLINGS)
SIZE = 100_000
GROWTH = {"100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
ROUNDS = 25
STREAM_ROUNDS = 15
GROWTH_ROUNDS = 7
NETWORK_READ = 4096


def bare(data: bytes) -> bytes:
    """The least that a program does which looks at a body and sends it on."""
    return msgspec.json.encode(msgspec.json.decode(data))


class Work:
    """The jobs on one body of one dialect."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.data = documents.request(name, size)
        self._last_words = documents.last_words_pointer(name, msgspec.json.decode(self.data))

    def read(self) -> object:
        """From bytes to the canonical request."""
        return dialect(self.name).read_request(WireDocument(self.data).document)

    def passed(self) -> bytes:
        """Read, found to be of the same dialect, and sent on as it came."""
        return translate_request(self.data, self.name, self.name).data

    def edited(self) -> bytes:
        """The user's last words replaced, everything else as it came."""
        return WireDocument(self.data).set(self._last_words, "Then only the tests, please.").data

    def translated(self, target: str) -> bytes:
        """Read and written anew for another provider."""
        return translate_request(self.data, self.name, target).data


def requests_report() -> str:
    header = ["request", "bytes", "bare JSON", "read", "pass", "edit", *(f"to {target}" for target in DIALECTS)]
    rows = [["(aim)", "", "", "<= 3.00x", "", "<= 3.00x", *("" for _ in DIALECTS)]]
    for name in DIALECTS:
        work = Work(name, SIZE)
        jobs: dict[str, Callable[[], object]] = {
            "bare": partial(bare, work.data),
            "read": work.read,
            "pass": work.passed,
            "edit": work.edited,
        }
        for target in DIALECTS:
            if target != name:
                jobs[target] = partial(work.translated, target)
        times = medians(jobs, ROUNDS)
        least = times["bare"]
        figures = [ratio(times[job] / least) if job in times else "-" for job in ["read", "pass", "edit", *DIALECTS]]
        rows.append([name, f"{len(work.data):,}", milliseconds(least), *figures])
    return table("Requests, as ratios to msgspec.json.decode + encode of the same bytes", header, rows)


def split_and_decode(data: bytes) -> int:
    """The least that a program does which looks at a stream."""
    count = 0
    for block in data.split(b"\n\n"):
        body = block[block.find(b"data: ") + 6 :] if block else b""
        if body and body != b"[DONE]":
            msgspec.json.decode(body)
            count += 1
    return count


def decode_stream(name: str, data: bytes) -> int:
    """From the bytes of a connection to events, in pieces as a socket gives them."""
    decoder, reader, count = SseDecoder(), dialect(name).stream_reader(), 0
    for start in range(0, len(data), NETWORK_READ):
        for frame in decoder.feed(data[start : start + NETWORK_READ]):
            count += len(reader.feed(frame))
    return count + len(reader.close())


def streams_report() -> str:
    rows = [["(aim)", "", "", "", "", "<= 3.00x"]]
    for name in DIALECTS:
        data = streams.stream(name)
        jobs: dict[str, Callable[[], object]] = {
            "bare": partial(split_and_decode, data),
            "events": partial(decode_stream, name, data),
        }
        times = medians(jobs, STREAM_ROUNDS)
        counts = [f"{split_and_decode(data):,}", f"{decode_stream(name, data):,}"]
        rows.append([name, *counts, *map(milliseconds, times.values()), ratio(times["events"] / times["bare"])])
    header = ["stream", "chunks", "events", "split + JSON", "decoded", "ratio"]
    return table("Streams, as ratios to splitting the frames and decoding their JSON", header, rows)


def growth_report() -> str:
    rows = []
    for name in DIALECTS:
        target = next(other for other in DIALECTS if other != name)
        works = {label: Work(name, size) for label, size in GROWTH.items()}
        jobs: dict[str, Callable[[Work], object]] = {
            "bare JSON": lambda work: bare(work.data),
            "read": Work.read,
            "edit": Work.edited,
            f"to {target}": partial(Work.translated, target=target),
        }
        for job, run in jobs.items():
            times = medians({label: partial(run, work) for label, work in works.items()}, GROWTH_ROUNDS)
            per_byte = {label: times[label] / len(work.data) for label, work in works.items()}
            rows.append([f"{name}: {job}", *(ratio(value / per_byte["100 KB"]) for value in per_byte.values())])
    title = "Growth: time per byte, as ratios to the 100 KB figure (linear is 1.00x; compare the bare JSON row)"
    return table(title, ["job", *GROWTH], rows)
