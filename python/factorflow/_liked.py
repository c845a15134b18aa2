"""Items that users have rated, which recommendations leave out."""

import numpy as np
import pyarrow as pa

from ._matrix import MatrixRatings


class LikedItems:
    """The rated items of each user: those of row u are items[indptr[u] : indptr[u + 1]]."""

    def __init__(self, indptr, items, row_of=None, position_of=None):
        self._indptr = indptr
        self._items = items
        # For rows and columns of a matrix, which are not positions of the model.
        self._row_of = row_of
        self._position_of = position_of

    @classmethod
    def of(cls, sources, state):
        """The ratings of one or more trainings."""
        if len(sources) == 1 and isinstance(sources[0], MatrixRatings):
            matrix = sources[0].matrix.tocsr()
            return cls(matrix.indptr, matrix.indices, state.users.ids.labels, state.items.ids.find)
        pairs = [np.zeros((2, 0), np.int32)]
        for source in sources:
            for batch in source.batches(check=False):
                batch = batch.drop_null()
                columns = [batch.column(at).to_numpy(zero_copy_only=False) for at in (0, 1)]
                both = np.stack([state.users.ids.find(columns[0]), state.items.ids.find(columns[1])])
                pairs.append(both[:, (both >= 0).all(axis=0)].astype(np.int32))
        users, items = np.concatenate(pairs, axis=1)
        indptr = np.zeros(len(state.users.ids) + 1, np.int64)
        np.cumsum(np.bincount(users, minlength=len(state.users.ids)), out=indptr[1:])
        return cls(indptr, items[np.argsort(users, kind="stable")])

    def entries(self, positions):
        """Pairs of positions (users, items) of some users."""
        rows = positions if self._row_of is None else self._row_of[positions]
        starts, ends = self._indptr[rows], self._indptr[rows + 1]
        found = [self._items[start:end] for start, end in zip(starts, ends)]
        users = np.repeat(positions, ends - starts)
        items = np.concatenate(found) if found else np.zeros(0, np.int64)
        return (users, items) if self._position_of is None else _known(users, self._position_of(items))


def matrix_entries(matrix, state):
    """The entries of a csr matrix as arrays: rows, positions of items, ratings."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    ids = state.items.ids
    items = matrix.indices if ids.count is None else ids.find(matrix.indices)
    return _known(rows, items, matrix.data)


def _known(users, items, *more):
    known = items >= 0
    return (users[known], items[known], *(one[known] for one in more))


def pair_batch(state, users, items):
    """Pairs of positions as a batch {user, item} of ids."""
    return pa.record_batch([state.users.ids.take(users), state.items.ids.take(items)], ["user", "item"])


def rating_batch(state, rows, items, ratings):
    """Ratings of users who are numbers of rows, as a batch {user, item, rating}."""
    columns = [
        pa.array(rows.astype(np.int32)),
        state.items.ids.take(items),
        pa.array(ratings.astype(np.float32)),
    ]
    return pa.record_batch(columns, ["user", "item", "rating"])
