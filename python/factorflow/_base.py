"""Parameters, training, saving and loading: what ALS and SGD share."""

import contextlib
import logging
import os
import sys
import warnings

import numpy as np

from . import _names
from ._errors import DataError, FactorFlowWarning, NotFittedError, UsageError, WorkerEndedError
from ._histories import LoadedRatings, SavedRatings
from ._ratings import ratings_of
from ._state import received
from ._workers import Slot

_log = logging.getLogger("factorflow")


class Base:
    """A trainer and, after `fit`, its model."""

    #: Set by the subclasses: the algorithm's name for the worker, and its parameters' names.
    _algorithm = ""
    _table = {}

    def __init__(self, named):
        """`named`: local variables of the subclass's constructor: parameters, and further `options`."""
        options = named["options"]
        params = {
            name: value for name, value in named.items() if name not in ("self", "options", "__class__")
        }
        for name in options:
            if name not in self._table and name not in _names.MACHINE:
                raise _names.unknown(name, [*self._table, *_names.MACHINE], type(self).__name__)
        self._params = {name: value for name, value in {**params, **options}.items() if value is not None}
        self._machine = {name: self._params.pop(name) for name in _names.MACHINE if name in self._params}
        _names.javascript_params(self._params, self._table, type(self).__name__)
        self._slot = Slot()
        # Replaced as a whole. A method takes it once, so another thread's fit does not change its answer.
        self._state = None
        #: The report of the last training: iterations with losses and seconds, sizes, warnings.
        self.report_ = None

    def get_params(self, deep=True):
        """The parameters that were given, by name."""
        return {**self._params, **self._machine}

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        fitted = (
            ""
            if self._state is None
            else f": {len(self._state.users.ids)} users, {len(self._state.items.ids)} items"
        )
        return f"<factorflow.{type(self).__name__}({given}){fitted}>"

    def __getstate__(self):
        """For pickle: the model without its process."""
        return {name: value for name, value in self.__dict__.items() if name != "_slot"}

    def __setstate__(self, state):
        self.__dict__.update(state, _slot=Slot())

    def fit(
        self,
        ratings,
        *,
        user="user",
        item="item",
        rating="rating",
        timestamp="timestamp",
        validation=None,
        show_progress=False,
        callback=None,
    ):
        """Trains the model; returns it.

        `ratings`: a scipy matrix of users by items, whose row and column numbers are the ids; or a pandas
        or polars DataFrame, an Arrow table or stream, a structured array, or arrays (users, items, ratings),
        whose ids are whole numbers or text. `user`, `item`, `rating`: names of the columns; rating=None
        rates all 1. `timestamp`: the column (or the fourth array) of times, for on_duplicates='last' only.
        `validation`: ratings in the same form, for early_stop.
        `callback(iteration, seconds, loss)` is called after each iteration; until `fit` returns, the methods
        answer by the model of before.
        """
        names = self._columns(user, item, rating, timestamp)
        source = self._ratings_of(ratings, names)
        held = None if validation is None else self._ratings_of(validation, names[:3])
        request = {
            "type": "train",
            "algorithm": self._algorithm,
            "params": self._javascript(),
            "rows": source.rows,
        }
        listen = _Listener(show_progress, callback)
        with self._updating(), self._slot.lend(self._flags()) as lent:
            worker = lent.worker
            if held is not None:
                self._send_data(worker, "validation", held)
                request["validation"] = "validation"
            answer, frames = worker.request(
                request, batches=(source.schema, source.batches(self._checks)), on_event=listen
            )
            state = received(answer["model"], frames, source.shape, source.dtypes)
            if held is not None:
                worker.request({"type": "forget", "name": "validation"})
            lent.holds = state
        state.sources = None if source.once else [source]
        self.report_ = listen.report
        self._state = state
        return self

    @contextlib.contextmanager
    def _updating(self):
        """One training or update at a time. Raises UsageError for one in a callback of another."""
        with self._slot.updating:
            if self._slot.lent is not None:
                raise UsageError("the model is being trained: a callback of fit cannot train or update it")
            yield

    def _columns(self, user, item, rating, timestamp, on_duplicates=None):
        times = (on_duplicates or self._params.get("on_duplicates")) == "last"
        return (user, item, rating, timestamp) if times else (user, item, rating)

    def _javascript(self):
        params = _names.javascript_params(self._params, self._table, type(self).__name__)
        if "seed" in params:
            params["seed"] = _seed_of(params["seed"])
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()
        }

    def _flags(self):
        flags = []
        for name, value in self._machine.items():
            if name == "num_threads" and value == 0:
                continue
            flags += [_names.MACHINE[name], str(value)]
        return flags

    @property
    def _checks(self):
        return self._params.get("on_bad_rows") != "skip"

    @property
    def _is_implicit(self):
        return bool(self._params.get("implicit") or self._params.get("implicit_prefs"))

    def _ratings_of(self, given, names):
        source = ratings_of(given, names, ones=self._is_implicit)
        if source.rows == 0:
            raise DataError("there are no ratings")
        return source

    def _send_data(self, worker, name, source):
        worker.request({"type": "data", "name": name}, batches=(source.schema, source.batches(self._checks)))

    @property
    def _fitted(self):
        if self._state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit, or load a model")
        return self._state

    def _ask(self, state, work):
        """The result of `work(worker)`, with a worker that holds this state of the model.

        Once more if the process had died, since it held nothing but a copy.
        """
        with self._slot.lock:
            try:
                return work(self._slot.hold(self._flags(), state))
            except WorkerEndedError:
                return work(self._slot.hold(self._flags(), state))

    def save(self, path, overwrite=False, histories=True):
        """Saves the model as a folder that FactorFlow's command line and Spark's ALSModel read.

        `histories`: with what each user has rated, if the model has it; the loaded model then leaves it out
        of recommendations and evaluations.
        """
        state = self._fitted
        request = {"type": "save", "path": os.path.abspath(os.fspath(path)), "overwrite": bool(overwrite)}
        saved = SavedRatings(state.histories, state) if histories and state.histories is not None else None
        request["histories"] = saved is not None

        def ask(worker):
            worker.request(request, batches=saved and (saved.lists_schema, saved.lists()))

        with self._slot.lock:
            if state.users.ids.count is not None:
                self._slot.holds = None  # The worker's own copy does not have the matrix's shape.
            self._ask(state, ask)

    def _load(self, path):
        with self._slot.lock:
            worker = self._slot.start(self._flags())
            request = {"type": "load", "path": os.path.abspath(os.fspath(path))}
            answer, frames = worker.request(request, on_event=_Listener(False, None))
            head = answer["model"]
            state = received(head, frames, head["metadata"].get("shape"))
            answer, lists = worker.request({"type": "histories"})
            if answer["rows"] is not None:
                state.sources = [LoadedRatings(lists)]
            self._state = self._slot.holds = state
        return self

    def close(self):
        """Ends the worker process of this model. The next call that needs one starts it again."""
        self._slot.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Listener:
    """Takes the events of a training."""

    def __init__(self, show_progress, callback):
        self.report = None
        self._show = show_progress
        self._callback = callback

    def __call__(self, event):
        kind = event["type"]
        if kind == "report":
            self.report = {name: value for name, value in event.items() if name not in ("type", "id")}
        elif kind == "warning":
            warnings.warn(_names.to_python(event["text"]), FactorFlowWarning, stacklevel=4)
        elif kind == "note":
            _log.info("%s", event["text"])
        elif kind == "iteration":
            if self._show:
                print(_line_of(event), file=sys.stderr)
            if self._callback is not None:
                self._callback(event["iteration"], event["seconds"], event.get("loss"))


def _line_of(event):
    parts = [f"iteration {event['iteration']} of {event.get('of', '?')}", f"{event['seconds']:.2f} s"]
    parts += [
        f"{name} {event[key]:.4f}"
        for key, name in (("trainRmse", "training RMSE"), ("testRmse", "validation RMSE"))
        if event.get(key)
    ]
    return ", ".join(parts)


def _seed_of(given):
    """A seed of what numpy accepts as random_state."""
    if isinstance(given, np.random.Generator):
        return int(given.integers(2**32))
    if isinstance(given, np.random.RandomState):
        return int(given.randint(2**32, dtype=np.uint32))
    return given
