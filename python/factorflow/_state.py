"""A model as arrays: what the worker sends after a training, and takes to hold it again."""

import numpy as np
import pyarrow as pa

from ._histories import Histories
from ._ids import Ids
from ._search import Search

_FRAME_BYTES = 1 << 23


class Side:
    """The users or the items of a model: ids, features, and numbers by name (means, counts)."""

    def __init__(self, ids, features, numbers):
        self.ids = ids
        self.features = features
        self.numbers = numbers
        self._made = {}

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}

    @property
    def search(self):
        """Finds the rows of highest product."""
        return self._once("search", lambda: Search(self.features))

    def units(self, rank):
        """The rows without biases, of length 1; zeros stay zeros."""
        return self._once("units", lambda: _units_of(self.features[:, :rank]))

    def cosines(self, rank):
        """Finds the rows of highest cosine."""
        return self._once("cosines", lambda: Search(self.units(rank)))

    def rows_at(self, positions):
        """The features at positions; zeros for -1."""
        if len(self.ids) == 0:
            return np.zeros((len(positions), self.features.shape[1]), np.float32)
        rows = self.features[positions]
        rows[positions < 0] = 0
        return rows

    def _once(self, name, make):
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = make()
        return made


def _units_of(rows):
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return (rows / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


class State:
    """A model. `head` has what is no array: rank, features, columns, metadata and others."""

    #: The ratings of the training, of which the histories are made when they are needed first.
    sources = None
    _histories = None

    def __init__(self, head, users, items):
        self.head = head
        self.users = users
        self.items = items

    def __getstate__(self):
        return {**self.__dict__, "sources": None, "_histories": self.histories}

    @property
    def histories(self):
        """What each user has rated; None if the model does not have it."""
        # In this order, since another thread may be about to make them.
        sources, histories = self.sources, self._histories
        if histories is None and sources is not None:
            histories = self._histories = Histories.of(sources, self)
            self.sources = None
        return histories

    @histories.setter
    def histories(self, histories):
        self._histories = histories

    @property
    def shape(self):
        """The numbers of rows and columns of the matrix; None for ratings of a table."""
        return None if self.users.ids.count is None else (self.users.ids.count, self.items.ids.count)

    @property
    def rank(self):
        return self.head["rank"]

    @property
    def has_biases(self):
        return self.head["features"] > self.head["rank"]

    @property
    def mean(self):
        """The mean that predictions contain; 0 without biases."""
        mean = self.head.get("meanRating")
        return float(mean) if self.has_biases and mean is not None else 0.0

    def send(self, worker):
        """Makes a worker hold this model."""
        width = self.head["features"]
        for name, side in (("users", self.users), ("items", self.items)):
            step = max(1, _FRAME_BYTES // (4 * width + 8))
            for first in range(0, max(1, len(side.ids)), step):
                piece = slice(first, first + step)
                payload = _stream_of(side.ids.column[piece], side.features[piece])
                worker.request({"type": "factors", "side": name, "features": width}, payload)
            for kind, values in side.numbers.items():
                worker.request({"type": "numbers", "side": name, "name": kind}, values.tobytes())
        head = {key: value for key, value in self.head.items() if key != "rank"}
        worker.request({"type": "model", **head})


def received(head, frames, shape, dtypes=(None, None)):
    """The model of an answer. `shape`: of the matrix of its ratings; None for a table."""
    shape = shape or (None, None)
    sides = []
    for at, name in enumerate(("users", "items")):
        own = [(header, payload) for header, payload in frames if header["side"] == name]
        column, features = read_factors(own, head["features"])
        numbers = {
            header["name"]: np.frombuffer(payload, np.float32)
            for header, payload in own
            if header["type"] == "numbers"
        }
        sides.append(Side(Ids(column, shape[at], dtypes[at]), features, numbers))
    return State(with_shape(head, shape), *sides)


def with_shape(head, shape):
    """`head` with the shape of a matrix, which is saved so that a loaded model has the same rows."""
    if shape is None or shape[0] is None:
        return head
    return {**head, "metadata": {**head["metadata"], "shape": list(shape)}}


def read_factors(frames, width):
    """Ids as an Arrow array and features as a matrix, of the frames `factors` of one side."""
    tables = [
        pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
        for header, payload in frames
        if header["type"] == "factors"
    ]
    ids, parts = [], []
    for table in tables:
        for batch in table.to_batches():
            ids.append(batch.column(0))
            parts.append(batch.column(1).flatten().to_numpy().reshape(-1, width))
    if not ids:
        return pa.array([], tables[0].schema.field(0).type if tables else pa.int32()), np.zeros(
            (0, width), np.float32
        )
    features = parts[0] if len(parts) == 1 else np.concatenate(parts)
    features.flags.writeable = False
    return ids[0] if len(ids) == 1 else pa.concat_arrays(ids), features


def _stream_of(ids, features):
    """Rows of factors as an Arrow stream {id, features}."""
    rows, width = features.shape
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    values = pa.array(np.ascontiguousarray(features).reshape(-1))
    batch = pa.record_batch([ids, pa.ListArray.from_arrays(offsets, values)], ["id", "features"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
