"""What users have rated: left out of recommendations and of evaluations, and saved with the model."""

import numpy as np
import pyarrow as pa


class Histories:
    """The rated items of each user and their weights: those of the user at position u are
    items[offsets[u] : offsets[u + 1]], as positions.
    """

    def __init__(self, offsets, items, weights):
        self.offsets = offsets
        self.items = items
        self.weights = weights

    @classmethod
    def of(cls, sources, state):
        """Those of the ratings of a training."""
        pairs, weights = [np.zeros((2, 0), np.int32)], [np.zeros(0, np.float32)]
        for source in sources:
            for batch in source.batches(check=False):
                users, items, ratings = (
                    column.to_numpy(zero_copy_only=False) for column in batch.drop_null().columns[:3]
                )
                both = np.stack([state.users.ids.find(users), state.items.ids.find(items)])
                known = (both >= 0).all(axis=0) & np.isfinite(ratings)
                pairs.append(both[:, known].astype(np.int32))
                weights.append(ratings[known])
        return cls.of_pairs(*np.concatenate(pairs, axis=1), np.concatenate(weights), len(state.users.ids))

    @classmethod
    def of_pairs(cls, users, items, weights, count):
        """Those of pairs in any order. `count`: the number of users."""
        if np.any(users[1:] < users[:-1]):
            order = np.argsort(users, kind="stable")
            users, items, weights = users[order], items[order], weights[order]
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(users, minlength=count), out=offsets[1:])
        return cls(offsets, items, weights)

    def users(self):
        """The user of each item."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    def pairs(self, positions):
        """Pairs of positions (users, items) of some users."""
        starts, ends = self.offsets[positions], self.offsets[positions + 1]
        found = [self.items[start:end] for start, end in zip(starts, ends)]
        return np.repeat(positions, ends - starts), np.concatenate(found) if found else np.zeros(0, np.int32)


def matrix_entries(matrix, state):
    """The entries of a csr matrix as arrays: rows, positions of items, ratings."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    ids = state.items.ids
    items = matrix.indices if ids.count is None else ids.find(matrix.indices)
    known = items >= 0
    return rows[known], items[known], matrix.data[known]


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
