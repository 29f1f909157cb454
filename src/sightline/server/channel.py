"""A channel between two processes of one server: messages in order, each with an open socket if necessary.

It is a pair of connected sockets that no other process can reach, and ends when the other process does.
"""

import asyncio
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Final

_LOG = logging.getLogger(__name__)
_HEAD: Final = struct.Struct("<I?")
"""The length of a message, and whether a socket is sent with it."""
_AT_ONCE: Final = 1 << 18
_MOST_SOCKETS: Final = 16
_MOST_READS: Final = 64
"""How many times the channel is read in one iteration of the event loop, which also serves clients."""


class Channel:
    """One end of the channel. `on_message` gets each message, and the descriptor of its socket or -1; it owns the
    descriptor. `on_end` is called once, when the other end is gone."""

    def __init__(
        self, end: socket.socket, on_message: Callable[[bytes, int], None], on_end: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._end = end
        self._on_message = on_message
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._came = bytearray()
        self._sockets: deque[int] = deque()
        self._waiting: deque[tuple[memoryview, int]] = deque()
        self.backlog = 0
        """Bytes that the other process has not read yet."""
        self.is_over = False
        """Whether nothing more can be sent."""
        self._is_writing = False
        self._loop.add_reader(end, self._read)

    def send(self, message: bytes, descriptor: int = -1) -> bool:
        """Send a message, with a socket if its descriptor is given; the caller may close its own at once. False if it
        cannot be sent: the other process is gone, or too many files are open."""
        if self.is_over:
            return False
        data = memoryview(_HEAD.pack(len(message), descriptor >= 0) + message)
        try:
            self._waiting.append((data, os.dup(descriptor) if descriptor >= 0 else -1))
        except OSError as error:  # most likely there are too many open files
            _LOG.error("a client's connection cannot be given to another process: %s", error)
            return False
        self.backlog += len(data)
        if not self._is_writing:
            self._write()
        return not self.is_over

    def close(self) -> None:
        """Close this end; `on_end` is not called."""
        if self.is_over:
            return
        self.is_over = True
        self._loop.remove_reader(self._end)
        if self._is_writing:
            self._loop.remove_writer(self._end)
        self._end.close()
        for descriptor in (*self._sockets, *(each for _, each in self._waiting if each >= 0)):
            os.close(descriptor)
        self._sockets.clear()
        self._waiting.clear()

    # --- writing ---

    def _write(self) -> None:
        try:
            while self._waiting:
                data, descriptor = self._waiting.popleft()
                try:
                    sent = self._send_some(data, descriptor)
                except OSError:
                    self._waiting.appendleft((data, descriptor))
                    raise
                if descriptor >= 0:
                    os.close(descriptor)
                self.backlog -= sent
                if sent < len(data):
                    self._waiting.appendleft((data[sent:], -1))
        except (BlockingIOError, InterruptedError):
            if not self._is_writing:
                self._is_writing = True
                self._loop.add_writer(self._end, self._write)
            return
        except OSError:
            self._finish()
            return
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._end)

    def _send_some(self, data: memoryview, descriptor: int) -> int:
        if descriptor >= 0:
            return socket.send_fds(self._end, [data], [descriptor])
        return self._end.send(data)

    # --- reading ---

    def _read(self) -> None:
        try:
            for _ in range(_MOST_READS):
                data, descriptors, _, _ = socket.recv_fds(self._end, _AT_ONCE, _MOST_SOCKETS)
                self._sockets.extend(descriptors)
                if not data:
                    self._finish()
                    return
                self._came += data
                self._take_messages()
                if self.is_over:
                    return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._finish()

    def _take_messages(self) -> None:
        at, came = 0, self._came
        while len(came) - at >= _HEAD.size:
            length, has_socket = _HEAD.unpack_from(came, at)
            if len(came) - at - _HEAD.size < length:
                break
            at += _HEAD.size + length
            message = bytes(came[at - length : at])
            descriptor = self._sockets.popleft() if has_socket and self._sockets else -1
            if has_socket and descriptor < 0:
                # The system has dropped the socket: this process has too many open files.
                _LOG.error("a client is disconnected: too many open files")
                continue
            if descriptor >= 0:
                os.set_inheritable(descriptor, False)
            self._on_message(message, descriptor)
            if self.is_over:
                return
        del came[:at]

    def _finish(self) -> None:
        self.close()
        self._on_end()
