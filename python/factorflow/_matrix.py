"""Ratings in a scipy matrix of users by items."""

import numpy as np
import pyarrow as pa

from ._errors import DataError

_BATCH = 1 << 18
_SCHEMA = pa.schema([("user", pa.int32()), ("item", pa.int32()), ("rating", pa.float32())])


def is_matrix(given):
    """True for any sparse matrix or array of scipy, which need not be installed."""
    return type(given).__module__.startswith("scipy.sparse")


class MatrixRatings:
    """The stored entries of a matrix; ids are its row and column numbers."""

    once = False
    schema = _SCHEMA
    dtypes = (np.dtype(np.int32), np.dtype(np.int32))

    def __init__(self, matrix):
        if matrix.ndim != 2:
            raise DataError(f"ratings need a matrix of users by items, and the shape is {matrix.shape}")
        if max(matrix.shape) >= 2**31:
            raise DataError(f"a matrix of shape {matrix.shape} has row numbers of more than 32 bits")
        if matrix.dtype.kind not in "fiub":
            raise DataError(f"ratings must be numbers, and the matrix has {matrix.dtype}")
        self.matrix = matrix if matrix.format in ("csr", "csc", "coo") else matrix.tocsr()
        self.shape = matrix.shape
        self.rows = int(self.matrix.nnz)

    def batches(self, check=True):
        """Batches {user, item, rating}. Raises DataError for an entry that is not finite, if `check`."""
        for users, items, values in self._pieces():
            ratings = values.astype(np.float32, copy=False)
            if check and not np.isfinite(ratings).all():
                at = int(np.flatnonzero(~np.isfinite(ratings))[0])
                raise DataError(
                    f"the rating of user {users[at]} and item {items[at]} is {ratings[at]}. Remove it, or "
                    "give on_bad_rows='skip' to the constructor"
                )
            arrays = [np.ascontiguousarray(one, np.int32) for one in (users, items)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(arrays[0]), pa.array(arrays[1]), pa.array(ratings)], schema=_SCHEMA
            )

    def _pieces(self):
        matrix = self.matrix
        if matrix.format == "coo":
            users, items = matrix.row, matrix.col
            for at in range(0, self.rows, _BATCH):
                piece = slice(at, at + _BATCH)
                yield users[piece], items[piece], matrix.data[piece]
            return
        # A row of csr is a user, a column of csc an item.
        for at in range(0, self.rows, _BATCH):
            end = min(self.rows, at + _BATCH)
            major = _majors(matrix.indptr, at, end)
            minor = matrix.indices[at:end]
            pair = (major, minor) if matrix.format == "csr" else (minor, major)
            yield *pair, matrix.data[at:end]


def _majors(indptr, start, end):
    """The row numbers of the entries from `start` to `end`."""
    first = int(np.searchsorted(indptr, start, "right")) - 1
    last = int(np.searchsorted(indptr, end, "left"))
    bounds = np.clip(indptr[first : last + 1], start, end)
    return np.repeat(np.arange(first, last, dtype=np.int32), np.diff(bounds))
