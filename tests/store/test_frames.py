from sightline.model.exchange import FrameArrived
from sightline.store.delta import Codec
from sightline.store.entries import FactEntry
from sightline.store.frames import pack_frames, raw_bytes, unpack_frames

FRAMES = [FrameArrived(b"data: %d\n\n" % n, 0.1 * n) for n in range(200)]
NOTED = [FactEntry("x_1", 3 + n, 100.0 + n, frame) for n, frame in enumerate(FRAMES)]


def test_frames_come_back_with_their_numbers_and_times() -> None:
    codec = Codec()
    data = pack_frames(codec, zip(NOTED, FRAMES, strict=True))
    assert unpack_frames(codec, "x_1", data) == NOTED
    assert raw_bytes(codec, data) == b"".join(frame.data for frame in FRAMES)
    assert len(data) < 3000
