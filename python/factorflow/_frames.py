"""Frames of the worker's protocol: docs/reference/worker-protocol.md of FactorFlow."""

import io
import json
import struct

_HEAD = struct.Struct("<II")
_CHUNK = 1 << 20


def read_frame(stream):
    """The next frame as (header, payload); None at the end of the stream."""
    head = _read(stream, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    header_bytes, payload_bytes = _HEAD.unpack(head)
    header = _read(stream, header_bytes)
    payload = _read(stream, payload_bytes)
    if len(header) < header_bytes or len(payload) < payload_bytes:
        return None
    return json.loads(bytes(header)), payload


def write_frame(stream, header, payload=b""):
    """Writes a frame to an unbuffered stream."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    size = memoryview(payload).nbytes
    _write(stream, _HEAD.pack(len(text), size) + text)
    if size > 0:
        _write(stream, payload)


def _read(stream, size):
    """The next bytes; fewer at the end."""
    found = bytearray(size)
    at, view = 0, memoryview(found)
    while at < size:
        count = stream.readinto(view[at:])
        if not count:
            return memoryview(found)[:at]
        at += count
    return found


def _write(stream, payload):
    view = memoryview(payload).cast("B")
    while len(view) > 0:
        view = view[stream.write(view) :]


class BytesFrames(io.RawIOBase):
    """A file that sends what is written to it as frames `bytes` of one request."""

    def __init__(self, stream, request):
        self._stream = stream
        self._request = request
        self._waiting = []
        self._size = 0

    def writable(self):
        return True

    def write(self, data):
        view = memoryview(data).cast("B")
        # Small writes are Arrow's metadata and padding; their memory may be used again.
        self._waiting.append(bytes(view))
        self._size += len(view)
        if self._size >= _CHUNK:
            self._send()
        return len(view)

    def end(self):
        """Sends what is left, and the end."""
        self._send()
        write_frame(self._stream, {"type": "bytes", "id": self._request})

    def _send(self):
        if self._size == 0:
            return
        write_frame(self._stream, {"type": "bytes", "id": self._request}, b"".join(self._waiting))
        self._waiting, self._size = [], 0
