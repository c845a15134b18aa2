"""Ids of users or items: labels of a table, or positions of a matrix."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ._arrays import array_of
from ._errors import UsageError

# Whole numbers up to this one are exact in float64 and in JavaScript.
_EXACT = 2**53

# At most this number of texts is found one by one.
_FEW = 256


class Ids:
    """The ids of one side, ascending as the worker has them.

    `count`: for ratings from a matrix, its number of rows or columns; ids are then positions, and some of
    them may have no ratings. None for the labels of a table.
    """

    def __init__(self, column, count=None, dtype=None):
        self.column = column
        self.count = count
        self.is_text = pa.types.is_string(column.type)
        # Whole numbers as the caller had them; the worker may have fewer bits.
        self.dtype = np.dtype(object) if self.is_text else np.dtype(dtype or column.type.to_pandas_dtype())
        self._labels = None
        self._table = None

    def __len__(self):
        return len(self.column)

    def __getstate__(self):
        return {**self.__dict__, "_labels": None, "_table": None}

    @property
    def labels(self):
        """The ids as a numpy array, for reading."""
        labels = self._labels
        if labels is None:
            labels = self.column.to_numpy(zero_copy_only=False).astype(self.dtype, copy=False)
            labels.flags.writeable = False
            self._labels = labels
        return labels

    @property
    def shape(self):
        """The number of rows that callers see."""
        return len(self) if self.count is None else self.count

    def given(self, ids, side):
        """Ids of a caller (one, or a list in any form) as an array of int64 or of text.

        Every method that takes ids checks them here. Raises UsageError for a value that is no id of this
        model's kind, such as 3.5, True, None or a date. Numbers beyond 64 bits make an array of objects.
        """
        array = np.atleast_1d(array_of(ids))
        if array.ndim != 1:
            raise UsageError(f"ids of {side}s must be one or a list of them, and the shape is {array.shape}")
        if np.ma.is_masked(array):
            at = int(np.flatnonzero(np.ma.getmaskarray(array))[0])
            raise UsageError(f"{side} {at} of the list is masked")
        array = np.ma.getdata(array)
        found = _texts(array) if self.is_text else _whole_numbers(array)
        if isinstance(found, np.ndarray):
            return found
        value = plain(array[found])
        kind = "text" if self.is_text else "whole numbers"
        raise UsageError(
            f"{side} {value!r} is of type {type(value).__name__}, and the ids of the model's {side}s are "
            f"{kind}"
        )

    def find(self, ids):
        """Positions of ids as `given` returns them; -1 for one that is not present."""
        if self.is_text and len(ids) <= _FEW:
            return np.array([self._places.get(one, -1) for one in ids], np.int64)
        if self.is_text:
            found = pc.index_in(pa.array(ids, pa.string()), self.column)
            return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if self._is_dense and ids.dtype != object:
            positions = self._positions[np.clip(ids, 0, self.count - 1)]
            return np.where((ids >= 0) & (ids < self.count), positions, -1)
        at = np.searchsorted(self.labels, ids)
        known = at < len(self)
        known[known] = self.labels[at[known]] == ids[known]
        return np.where(known, at, -1)

    @property
    def _places(self):
        """The position of each id of text: made once, where an index for each call would take longer."""
        table = self._table
        if table is None:
            table = self._table = {label: at for at, label in enumerate(self.labels)}
        return table

    @property
    def _is_dense(self):
        """True for a matrix whose rows are few enough for a table of positions."""
        return self.count is not None and self.count <= 4 * len(self) + 1_000_000

    @property
    def _positions(self):
        """For each row of a matrix its position; -1 for one without ratings."""
        table = self._table
        if table is None:
            table = np.full(self.count, -1)
            table[self.labels] = np.arange(len(self))
            self._table = table
        return table

    def require(self, ids, side):
        """Like `find`. Raises KeyError, for a matrix IndexError, that names the first unknown id.

        A row of a matrix that has no ratings is -1.
        """
        found = self.find(ids)
        missing = np.flatnonzero(found < 0)
        if self.count is not None:
            missing = [one for one in missing if not 0 <= ids[one] < self.count]
            if len(missing) > 0:
                raise IndexError(
                    f"{side} {ids[missing[0]]} is out of range: the model has {self.count} {side}s"
                )
        elif len(missing) > 0:
            raise KeyError(f"the model has no {side} {plain(ids[missing[0]])!r}")
        return found

    def at(self, positions):
        """The labels at positions; for -1 it is -1, of text None."""
        positions = np.asarray(positions)
        if len(self) == 0:
            return np.full(positions.shape, None if self.is_text else -1, self.dtype)
        found = self.labels[np.maximum(positions, 0)]
        found[positions < 0] = None if self.is_text else -1
        return found

    def take(self, positions):
        """The ids at positions as an Arrow array, for the worker."""
        return self.column.take(pa.array(positions, pa.int64()))

    def rows(self, values):
        """Values of the ids as rows that callers see: of a matrix also those without ratings, as zeros."""
        if self.count is None or self.count == len(self):
            return values
        all_rows = np.zeros((self.count, *values.shape[1:]), values.dtype)
        all_rows[self.labels] = values
        return all_rows

    def extended(self, ids):
        """These ids and further ones, with the order in which the joined rows ascend."""
        labels = np.concatenate([self.labels, ids])
        order = np.argsort(labels, kind="stable")
        labels = labels[order]
        if self.is_text:
            return Ids(pa.array(labels, pa.string())), order
        narrow = self.column.type == pa.int32() and _fits(labels, np.int32)
        dtype = self.dtype if _fits(labels, self.dtype) else np.dtype(np.int64)
        count = None if self.count is None else max(self.count, int(labels[-1]) + 1)
        return Ids(pa.array(labels, pa.int32() if narrow else pa.int64()), count, dtype), order


def _fits(ascending, dtype):
    """True if ascending whole numbers can have this type."""
    bounds = np.iinfo(dtype)
    return len(ascending) == 0 or (ascending[0] >= bounds.min and ascending[-1] <= bounds.max)


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _texts(array):
    """An array of text as objects; for any other the position of the first value that is no text."""
    values = array.astype(object)
    wrong = [at for at, value in enumerate(values) if not isinstance(value, str)]
    return wrong[0] if wrong else values


def _whole_numbers(array):
    """An array as int64, or as objects beyond 64 bits; else the position of the first other value."""
    kind = array.dtype.kind
    if kind == "i" or (kind == "u" and (array.size == 0 or array.max() < 2**63)):
        return array.astype(np.int64, copy=False)
    if kind not in "ufO":
        return array.astype(np.int64) if array.size == 0 else 0
    values = [_whole(value) for value in array]
    if None in values:
        return values.index(None)
    inside = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, np.int64 if inside else object)


def _whole(value):
    """A whole number of Python; None for what is none, or not exactly."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and value == np.floor(value) and abs(value) <= _EXACT:
        return int(value)
    return None


def as_json(values):
    """Ids for a request: numbers as far as JavaScript has them exactly, else text."""
    return [
        value if isinstance(value, str) else int(value) if -_EXACT < value < _EXACT else str(value)
        for value in values
    ]
