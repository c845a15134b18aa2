"""A process of `factorflow worker` that holds one model for this process."""

import collections
import contextlib
import json
import os
import queue
import subprocess
import threading
import weakref

import pyarrow as pa

from ._errors import WorkerEndedError, WorkerError, error_of
from ._frames import BytesFrames, read_frame, write_frame
from ._names import to_python
from ._node import command
from ._version import __version__

# Seconds for a process to end by itself.
_PATIENCE = 3


class Worker:
    """Answers requests, one at a time. Any failure ends the process; the owner starts another one."""

    def __init__(self, flags=()):
        # Its own session: Ctrl-C interrupts this process, which then decides about the worker.
        self._process = subprocess.Popen(
            [*command(), "worker", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._frames = queue.SimpleQueue()
        self._errors = collections.deque(maxlen=100)
        self._requests = 0
        self._finalizer = weakref.finalize(self, _end, self._process, self._owner)
        for target, arguments in (
            (_read_frames, (self._process.stdout, self._frames)),
            (_read_lines, (self._process.stderr, self._errors)),
        ):
            threading.Thread(target=target, args=arguments, daemon=True).start()
        with self._ended_by_failure():
            self._greet()

    @property
    def pid(self):
        return self._process.pid

    @property
    def alive(self):
        """True if the process runs and belongs to this process, not to the one that forked it."""
        return self._owner == os.getpid() and self._finalizer.alive and self._process.poll() is None

    def request(self, header, payload=b"", batches=None, on_event=None):
        """Sends a request; returns the fields of its answer and the frames before it.

        `batches`: (schema, iterable of record batches), sent after it as one Arrow stream.
        """
        with self._ended_by_failure():
            self._requests += 1
            number = self._requests
            self._write({**header, "id": number}, payload)
            if batches is not None:
                self._send_batches(number, *batches)
            frames = []
            while True:
                header, payload = self._next()
                kind = header.get("type")
                if kind == "answer" and header.get("id") == number:
                    break
                if kind in ("factors", "numbers", "lists"):
                    frames.append((header, payload))
                elif on_event is not None:
                    on_event(header)
        if "error" in header:
            raise error_of(header["error"], to_python)
        return header, frames

    def close(self):
        """Ends the process."""
        self._finalizer()

    def forget(self):
        """In a child of os.fork: lets go of the process, which belongs to the parent."""
        self._finalizer.detach()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                os.close(stream.fileno())
        # The process is none of this one's children.
        self._process.returncode = 0

    def _greet(self):
        line = json.dumps({"protocol": 1, "version": __version__, "command": "model"})
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
        header, _ = self._next()
        if header.get("type") != "hello" or header.get("version") != __version__:
            raise WorkerError(f"the worker is not factorflow {__version__}: {header}")

    def _send_batches(self, number, schema, batches):
        sink = BytesFrames(self._process.stdin, number)
        try:
            with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            sink.end()
        except BrokenPipeError:
            self._fail()

    def _write(self, header, payload):
        try:
            write_frame(self._process.stdin, header, payload)
        except BrokenPipeError:
            self._fail()

    def _next(self):
        """The next frame. Raises the error of a worker that has ended."""
        frame = self._frames.get()
        if frame is None:
            raise WorkerEndedError(f"the worker process ended unexpectedly{self._last_words()}")
        if frame[0].get("type") == "error":
            raise error_of(frame[0], to_python)
        return frame

    def _fail(self):
        """Raises the error that the worker sent before it ended."""
        while True:
            self._next()

    def _last_words(self):
        code = self._process.wait(_PATIENCE)
        said = "".join(self._errors).replace("\0", "").strip()
        return f" (exit {code})" + (f": {said}" if said else "")

    @contextlib.contextmanager
    def _ended_by_failure(self):
        """Ends the process at any exception, also KeyboardInterrupt: nobody knows where its frames are."""
        try:
            yield
        except BaseException:
            self.kill()
            raise

    def kill(self):
        """Ends the process, which removes its files if it can."""
        if self._owner == os.getpid() and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._finalizer()


def _end(process, owner):
    """Ends a worker that has nothing to do: it ends by itself when its stdin is closed."""
    if owner != os.getpid():
        return
    with contextlib.suppress(OSError):
        write_frame(process.stdin, {"type": "end", "id": 0})
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _read_frames(stream, frames):
    try:
        with stream, contextlib.suppress(OSError, ValueError):
            while (frame := read_frame(stream)) is not None:
                frames.put(frame)
    finally:
        frames.put(None)


def _read_lines(stream, lines):
    with stream, contextlib.suppress(OSError, ValueError):
        while chunk := stream.read(1 << 12):
            lines.append(chunk.decode("utf-8", "replace"))
