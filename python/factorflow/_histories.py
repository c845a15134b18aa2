"""What users have rated: left out of recommendations and of evaluations, and saved with the model."""

import numpy as np
import pyarrow as pa

# Ratings of a batch, unless a user has more.
_BATCH = 1 << 18


class Histories:
    """The rated items of each user and their weights: those of the user at position u are
    items[offsets[u] : offsets[u + 1]], as ascending positions.
    """

    def __init__(self, offsets, items, weights):
        self.offsets = offsets
        self.items = items
        self.weights = weights

    @classmethod
    def of(cls, sources, state):
        """Those of the ratings of a training. Where they have times, the last rating of a pair counts."""
        pairs, weights, times = [np.zeros((2, 0), np.int32)], [np.zeros(0, np.float32)], []
        for source in sources:
            for batch in source.batches(check=False):
                users, items, ratings, *time = (
                    column.to_numpy(zero_copy_only=False) for column in batch.drop_null().columns
                )
                both = np.stack([state.users.ids.find(users), state.items.ids.find(items)])
                known = (both >= 0).all(axis=0) & np.isfinite(ratings)
                pairs.append(both[:, known].astype(np.int32))
                weights.append(ratings[known])
                times += [one[known] for one in time]
        found = (*np.concatenate(pairs, axis=1), np.concatenate(weights))
        if times:
            by_time = np.argsort(np.concatenate(times), kind="stable")
            found = tuple(one[by_time] for one in found)
        return cls.of_pairs(*found, state, last=len(times) > 0)

    @classmethod
    def of_pairs(cls, users, items, weights, state, last=False):
        """Those of pairs of positions in any order. `last`: of several of a pair only the last one counts."""
        keys = users.astype(np.int64) * len(state.items.ids) + items
        if np.any(keys[1:] < keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, users, items, weights = keys[order], users[order], items[order], weights[order]
        if last and len(keys) > 0:
            kept = np.append(keys[1:] != keys[:-1], True)
            users, items, weights = users[kept], items[kept], weights[kept]
        offsets = np.zeros(len(state.users.ids) + 1, np.int64)
        np.cumsum(np.bincount(users, minlength=len(state.users.ids)), out=offsets[1:])
        return cls(offsets, items, weights)

    def pairs(self, positions, numbers=None):
        """Positions (users, items) and weights of what some users have rated; `numbers` in place of users."""
        starts, lengths = self.offsets[positions], self.offsets[positions + 1] - self.offsets[positions]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = np.repeat(starts, lengths) + inside
        users = positions if numbers is None else numbers
        return np.repeat(users, lengths), self.items[at], self.weights[at]

    def continued(self, before, after, added, *, last=False, replaced=None):
        """These of the state `before` as those of the state `after`, with added (users, items, weights).

        `last`: an added rating of a pair replaces the one of before. `replaced`: users whose earlier ratings
        do not count any more.
        """
        users = np.repeat(after.users.ids.find(before.users.ids.labels), np.diff(self.offsets))
        items = after.items.ids.find(before.items.ids.labels)[self.items]
        kept = slice(None) if replaced is None else ~np.isin(users, replaced)
        joined = zip((users[kept], items[kept], self.weights[kept]), added)
        users, items, weights = (np.concatenate(pair) for pair in joined)
        pairs = (users.astype(np.int32), items.astype(np.int32), weights.astype(np.float32))
        return Histories.of_pairs(*pairs, after, last)


class SavedRatings:
    """Histories as ratings of the model's ids: batches {user, item, rating}, or lists as they are saved."""

    once = False

    def __init__(self, histories, state):
        self._histories = histories
        self._ids = (state.users.ids, state.items.ids)
        user, item = (ids.column.type for ids in self._ids)
        self.rows = len(histories.items)
        self.schema = pa.schema([("user", user), ("item", item), ("rating", pa.float32())])
        lists = [
            pa.field(name, pa.list_(pa.field(element, kind, nullable=False)), nullable=False)
            for name, element, kind in (("items", "item", item), ("weights", "weight", pa.float32()))
        ]
        self.lists_schema = pa.schema([pa.field("id", user, nullable=False), *lists])

    def batches(self, check=True):
        """Batches {user, item, rating}."""
        for users, offsets, items, weights in self._pieces():
            columns = [self._ids[0].take(np.repeat(users, np.diff(offsets))), items, weights]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def lists(self):
        """Batches {id, items, weights}: one row for each user who has rated."""
        for users, offsets, items, weights in self._pieces():
            lists = [
                pa.ListArray.from_arrays(pa.array(offsets), values, type=field.type)
                for field, values in zip(list(self.lists_schema)[1:], (items, weights))
            ]
            yield pa.RecordBatch.from_arrays([self._ids[0].take(users), *lists], schema=self.lists_schema)

    def _pieces(self):
        """Users who have rated, with the offsets, ids and weights of their items."""
        offsets = self._histories.offsets
        rated = np.flatnonzero(np.diff(offsets))
        at = 0
        while at < len(rated):
            first = offsets[rated[at]]
            end = max(at + 1, int(np.searchsorted(offsets[rated + 1], first + _BATCH)))
            users = rated[at:end]
            last = offsets[users[-1] + 1]
            starts = np.append(offsets[users], last) - first
            items = self._ids[1].take(self._histories.items[first:last])
            yield users, starts.astype(np.int32), items, pa.array(self._histories.weights[first:last])
            at = end


class NewRatings:
    """The ratings of a source that a model does not have already, with the same value."""

    once = False

    def __init__(self, source, state):
        self._source = source
        self.schema, self.shape = source.schema, source.shape
        self._kept = [self._new_rows(batch, state) for batch in source.batches(check=False)]
        self.rows = int(sum(kept.sum() for kept in self._kept))

    def batches(self, check=True):
        for batch, kept in zip(self._source.batches(check), self._kept):
            if kept.any():
                yield batch.filter(pa.array(kept))

    @staticmethod
    def _new_rows(batch, state):
        kept = np.full(batch.num_rows, True)
        if any(column.null_count > 0 for column in batch.columns):
            return kept
        users, items, ratings = (column.to_numpy(zero_copy_only=False) for column in batch.columns[:3])
        users, items = state.users.ids.find(users), state.items.ids.find(items)
        known = (users >= 0) & (items >= 0)
        count = len(state.items.ids)
        own = _triples(*state.histories.pairs(np.unique(users[known])), count)
        kept[known] = ~np.isin(_triples(users[known], items[known], ratings[known], count), own)
        return kept


def _triples(users, items, ratings, count):
    """User, item and rating as one number, which numpy can sort: exact while users x items is below 2^53."""
    return (users.astype(np.float64) * count + items) + 1j * ratings


class LoadedRatings:
    """The lists {id, items, weights} of a loaded model as batches {user, item, rating}."""

    once = False

    def __init__(self, frames):
        self._frames = frames

    def batches(self, check=True):
        for _, payload in self._frames:
            for batch in pa.ipc.open_stream(pa.py_buffer(payload)).read_all().to_batches():
                ids, items, weights = batch.columns
                users = ids.take(items.value_parent_indices())
                yield pa.record_batch([users, items.flatten(), weights.flatten()], ["user", "item", "rating"])


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
