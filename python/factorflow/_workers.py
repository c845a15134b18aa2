"""The workers of this process: a few at a time, none shared with a child of os.fork."""

import contextlib
import os
import threading
import weakref

from ._worker import Worker

# A worker takes some 100 MB, so a search over parameters must not leave one for each of its models.
_MOST = 4

_lock = threading.Lock()
_slots = []
_all_slots = weakref.WeakSet()


class Lent:
    """The worker of a training, and the state of the model that it holds at the end."""

    def __init__(self, worker):
        self.worker = worker
        self.holds = None


class Slot:
    """The place of one model's worker. The pool may close an idle one; the model then starts another."""

    def __init__(self):
        # Held for one request.
        self.lock = threading.RLock()
        # Held for one training or update.
        self.updating = threading.RLock()
        self.worker = None
        # The state of the model that the worker holds; None for no model.
        self.holds = None
        # Of the training that runs.
        self.lent = None
        with _lock:
            _all_slots.add(self)

    def start(self, flags):
        """The running worker, or a new one; hold `lock` meanwhile."""
        if self.worker is None or not self.worker.alive:
            self.worker, self.holds = Worker(flags), None
        _use(self)
        return self.worker

    @contextlib.contextmanager
    def lend(self, flags, state=None):
        """A worker for a training, which holds `state`. Other requests meanwhile, also those of a callback of
        the training, are answered by another worker. The caller sets `holds` of what it gets.
        """
        with self.lock:
            lent = self.lent = Lent(self.hold(flags, state) if state is not None else self.start(flags))
            self.worker = self.holds = None
        try:
            yield lent
        finally:
            with self.lock:
                if self.worker is not None:
                    self.worker.close()
                # At once: another thread may give the worker another state from now on.
                self.worker, self.holds, self.lent = lent.worker, lent.holds, None

    def hold(self, flags, state):
        """The worker, after it got this state of the model; hold `lock` meanwhile."""
        worker = self.start(flags)
        if self.holds is not state:
            self.holds = None
            state.send(worker)
            self.holds = state
        return worker

    def close(self):
        with self.lock:
            worker, self.worker, self.holds = self.worker, None, None
            if worker is not None:
                worker.close()


def _use(slot):
    """Notes the use of a slot, and closes the one that has not been used for the longest time."""
    with _lock:
        _slots[:] = [one for one in _slots if one() is not None and one() is not slot]
        _slots.append(weakref.ref(slot))
        spare = [one() for one in _slots[:-_MOST]]
    for old in spare:
        # One that answers a request at present stays.
        if old is not None and old.lock.acquire(blocking=False):
            try:
                old.close()
            finally:
                old.lock.release()
            with _lock:
                _slots[:] = [one for one in _slots if one() is not old]


def _after_fork_in_child():
    global _lock
    _lock = threading.Lock()
    _slots.clear()
    for slot in list(_all_slots):
        slot.lock, slot.updating = threading.RLock(), threading.RLock()
        for worker in (slot.worker, slot.lent and slot.lent.worker):
            if worker is not None:
                worker.forget()
        slot.worker = slot.holds = slot.lent = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
