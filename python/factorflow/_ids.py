"""Ids of users or items: labels of a table, or positions of a matrix."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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

    def __len__(self):
        return len(self.column)

    def __getstate__(self):
        return {**self.__dict__, "_labels": None}

    @property
    def labels(self):
        """The ids as a numpy array, for reading."""
        if self._labels is None:
            self._labels = self.column.to_numpy(zero_copy_only=False).astype(self.dtype, copy=False)
            self._labels.flags.writeable = False
        return self._labels

    @property
    def shape(self):
        """The number of rows that callers see."""
        return len(self) if self.count is None else self.count

    def find(self, ids):
        """Positions of ids; -1 for one that is not present."""
        ids = np.asarray(ids)
        if self.is_text:
            found = pc.index_in(pa.array([str(one) for one in ids.ravel()], pa.string()), self.column)
            return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if ids.dtype.kind not in "iu":
            ids = _whole(ids)
        at = np.searchsorted(self.labels, ids)
        known = at < len(self)
        known[known] = self.labels[at[known]] == ids[known]
        return np.where(known, at, -1)

    def require(self, ids, side):
        """Like `find`. Raises KeyError, for a matrix IndexError, that names the first unknown id.

        A row of a matrix that has no ratings is -1.
        """
        found = self.find(ids)
        missing = np.flatnonzero(found < 0)
        if self.count is not None:
            values = np.asarray(ids)
            missing = [one for one in missing if not 0 <= values[one] < self.count]
            if len(missing) > 0:
                raise IndexError(
                    f"{side} {values[missing[0]]} is out of range: the model has {self.count} {side}s"
                )
        elif len(missing) > 0:
            value = np.asarray(ids)[missing[0]]
            raise KeyError(f"the model has no {side} {_plain(value)!r}")
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


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _whole(ids):
    """Ids of any type as whole numbers; -1, which no caller has, for what is none."""
    try:
        return ids.astype(np.int64)
    except (TypeError, ValueError):
        return np.array(
            [one if isinstance(one, (int, np.integer)) else np.iinfo(np.int64).min for one in ids]
        )


def as_json(values):
    """Ids for a request: numbers as far as JavaScript has them exactly, else text."""
    most = 2**53 - 1
    return [
        value if isinstance(value, str) else int(value) if -most <= value <= most else str(value)
        for value in values
    ]
