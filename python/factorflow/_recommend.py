"""Recommendations, similar rows and predictions."""

import numpy as np
import pyarrow as pa

from ._errors import DataError, UsageError
from ._histories import matrix_entries, pair_batch, rating_batch
from ._ids import as_json
from ._matrix import MatrixRatings, is_matrix

# At most the number of items of one list.
_MOST = 1000

# Multiplications above which lists are made by the worker, if it may have a GPU.
_MOST_WORK = 10**12


class Recommending:
    """Methods of a fitted model that return lists of ids and scores."""

    def recommend(
        self,
        userid,
        user_items=None,
        N=10,
        filter_already_liked_items=True,
        filter_items=None,
        recalculate_user=False,
        items=None,
    ):
        """The N best items of a user as arrays (ids, scores), best first; of several users as two matrices.

        `user_items`: a csr matrix of the users' ratings, a row for each of `userid`; its columns are items
        in the order of `item_ids`. Without it the ratings of `fit` are left out. `filter_items`: never
        recommended. `items`: the only ones that may be. `recalculate_user`: solves the users from
        `user_items`, so that they need not be known. If lists of several users are short, the matrices are
        masked arrays. Users with factors of 0 get none: they have rated only items that are new, too.
        """
        state = self._fitted
        single = np.ndim(userid) == 0
        users = state.users.ids.given(userid, "user")
        n = _count(N, len(state.items.ids))
        entries = None if user_items is None else entries_of(state, user_items, len(users))
        chosen = _Chosen(state.items.ids, filter_items, items, "item")
        if recalculate_user:
            if entries is None:
                raise UsageError("recalculate_user needs user_items, the ratings to solve the users from")
            found = self._recommend_solved(state, n, chosen, entries, filter_already_liked_items)
            # The worker knows such users by their rows in the request.
            ids, scores = _matrices(np.arange(len(users)), found, n, state.items.ids)
        else:
            positions = state.users.ids.require(users, "user")
            liked = None
            if filter_already_liked_items:
                liked = _liked_of(state, positions) if entries is None else entries[:2]
            if _is_for_worker(len(positions) * state.items.features.size, self._machine.get("device")):
                found = self._recommend_in_worker(state, n, chosen, positions, liked)
                ids, scores = _matrices(positions, found, n, state.items.ids)
            else:
                vectors = state.users.rows_at(positions)
                ids, scores = state.items.search.best(vectors, n, liked, chosen.mask)
                ids[~vectors.any(axis=1)] = -1
        return _answer(state.items.ids, ids, scores, single)

    def similar_items(self, itemid, N=10, *, filter_items=None, items=None):
        """The N items most similar to an item by cosine, itself first, as arrays (ids, similarities).

        Of several items two matrices. `filter_items`: are in no list. `items`: the only ones that may be.
        Biases are not compared.
        """
        state = self._fitted
        return _similar(state.items, state.rank, "item", itemid, N, filter_items, items)

    def similar_users(self, userid, N=10, *, filter_users=None, users=None):
        """The N users most similar to a user by cosine, as `similar_items`."""
        state = self._fitted
        return _similar(state.users, state.rank, "user", userid, N, filter_users, users)

    def predict(self, userids, itemids):
        """Predictions of pairs as float32; NaN for an unknown user or item. Of two ids one number."""
        state = self._fitted
        users, items = state.users.ids.given(userids, "user"), state.items.ids.given(itemids, "item")
        if len({len(users), len(items), 1}) > 2:
            raise DataError(f"predict takes pairs, and the shapes are {users.shape} and {items.shape}")
        pairs = np.broadcast_arrays(state.users.ids.find(users), state.items.ids.find(items))
        found = np.full(pairs[0].shape, np.nan, np.float32)
        step = 1 << 18
        for at in range(0, len(found), step):
            user, item = (one[at : at + step] for one in pairs)
            known = (user >= 0) & (item >= 0)
            left, right = state.users.features[user[known]], state.items.features[item[known]]
            found[at : at + step][known] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
        return float(found[0]) if np.ndim(userids) == 0 and np.ndim(itemids) == 0 else found

    def rank_items(self, userid, user_items, selected_items):
        """The selected items of a user, best first, as arrays (ids, scores)."""
        selected = np.unique(self._fitted.items.ids.given(selected_items, "item"))
        return self.recommend(
            userid, user_items, N=len(selected), filter_already_liked_items=False, items=selected
        )

    def _recommend_in_worker(self, state, n, chosen, positions, liked):
        """Rows (user, item, score) by position of known users. `liked`: pairs (numbers of `positions`, items)
        to leave out.
        """
        asked = np.unique(positions[positions >= 0])
        asked = asked[state.users.features[asked].any(axis=1)]
        if len(asked) == 0:
            return _NO_ROWS
        held = {"users": pa.record_batch([state.users.ids.take(asked)], ["user"])}
        if liked is not None:
            held["exclude"] = pair_batch(state, positions[liked[0]], liked[1])
        request = {"type": "recommend", "n": n, **chosen.lists}
        _, frames = self._ask(state, lambda worker: ask_with(worker, request, held))
        return _rows(frames, state.users.ids, state.items.ids)

    def _recommend_solved(self, state, n, chosen, entries, excluding):
        """Rows (user, item, score) of users solved from ratings; users are numbers of rows."""
        held = {"ratings": rating_batch(state, *entries)}
        request = {"type": "recommend", "n": n, **chosen.lists}
        if excluding:
            request["exclude"] = "ratings"
        _, frames = self._ask(state, lambda worker: ask_with(worker, request, held))
        return _rows(frames, None, state.items.ids)


def _is_for_worker(work, device):
    """True for lists of so much work that a GPU, if there is one, makes them in less time."""
    return work > _MOST_WORK and device != "cpu"


class _Chosen:
    """The rows that may be in lists: `mask` is True for each, None for all; `lists` are for the worker."""

    def __init__(self, ids, never, only, side):
        self.mask = None
        self.lists = {}
        for name, given in {"allow": only, "deny": never}.items():
            if given is None:
                continue
            values = ids.given(given, side)
            positions = ids.require(values, side)
            positions = positions[positions >= 0]
            if self.mask is None:
                self.mask = np.full(len(ids), name == "deny")
            if name == "allow":
                self.mask[positions] = True
            else:
                self.mask[positions] = False
            self.lists[name] = as_json(values)


def _similar(side, rank, name, given, count, never, only):
    ids = side.ids
    single = np.ndim(given) == 0
    positions = ids.require(ids.given(given, name), name)
    n = _count(count, len(ids))
    mask = _Chosen(ids, never, only, name).mask
    vectors = side.units(rank)
    others, similarities = side.cosines(rank).best(
        vectors[positions], n, (np.arange(len(positions)), positions), mask
    )
    # The row itself is first, if it may be in a list.
    shown = np.full(len(positions), True) if mask is None else mask[positions]
    found = np.where(shown[:, None], np.column_stack([positions, others[:, :-1]]), others)
    first = np.column_stack([np.ones(len(positions), np.float32), similarities[:, :-1]])
    scores = np.where(shown[:, None], first, similarities)
    found[positions < 0] = -1
    return _answer(ids, found, scores, single)


def _answer(ids, positions, scores, single):
    """Lists as callers get them: without what is missing, or with a mask of it in several lists."""
    known = positions >= 0
    labels = ids.at(positions)
    if single:
        return labels[0][known[0]], scores[0][known[0]]
    if known.all():
        return labels, scores
    scores[~known] = -np.inf
    return np.ma.array(labels, mask=~known), np.ma.array(scores, mask=~known)


def entries_of(state, user_items, count):
    """The ratings of `user_items`, a csr matrix with `count` rows: rows, positions of items, ratings."""
    if not is_matrix(user_items):
        raise UsageError(f"user_items is a {type(user_items).__name__}, need a scipy csr matrix")
    matrix = user_items.reshape(1, -1).tocsr() if user_items.ndim == 1 else user_items.tocsr()
    need = (count, state.items.ids.shape)
    if matrix.shape != need:
        raise UsageError(
            f"user_items has the shape {matrix.shape}, need {need}: a row for each user, as in X[userid]"
        )
    for _ in MatrixRatings(matrix).batches():
        pass  # Raises DataError for ratings that are no finite numbers.
    return matrix_entries(matrix, state)


def _liked_of(state, positions):
    """Rated pairs (numbers of `positions`, items). Raises UsageError if the model does not have them."""
    if state.histories is None:
        raise UsageError(
            "the model does not have the ratings of its training, which were a stream or are not saved: "
            "give user_items, or filter_already_liked_items=False"
        )
    rows = np.flatnonzero(positions >= 0)
    numbers, items, _ = state.histories.pairs(positions[rows], rows)
    return numbers, items


_NO_ROWS = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _count(given, most):
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 1:
        raise UsageError(f"N must be a whole number from 1, got {given!r}")
    if min(given, most) > _MOST:
        raise UsageError(f"N must be from 1 to {_MOST:,}, got {given:,}")
    return max(1, min(int(given), most))


def ask_with(worker, request, held):
    """The answer to a request that names batches, which the worker holds meanwhile."""
    for name, batch in held.items():
        worker.request({"type": "data", "name": name}, batches=(batch.schema, [batch]))
    answer = worker.request({**request, **{name: name for name in held}})
    for name in held:
        worker.request({"type": "forget", "name": name})
    return answer


def _rows(frames, users, items):
    """The rows of an answer as positions of users and items, and scores."""
    if not frames:
        return _NO_ROWS
    table = pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(payload)).read_all() for _, payload in frames])
    columns = [one.to_numpy() for one in table.columns]
    user = columns[0] if users is None else users.find(columns[0])
    return user, items.find(columns[2]), columns[3].astype(np.float32, copy=False)


def _matrices(positions, rows, n, ids):
    """Rows (user, item, score), best first for each user, as matrices with a row for each of `positions`."""
    users, items, scores = rows
    width = max(0, min(n, len(ids)))
    found = np.full((len(positions), width), -1, np.int64)
    values = np.full((len(positions), width), -np.inf, np.float32)
    if len(users) == 0:
        return found, values
    order = np.argsort(users, kind="stable")
    users, items, scores = users[order], items[order], scores[order]
    starts = np.flatnonzero(np.r_[True, users[1:] != users[:-1]])
    lengths = np.diff(np.r_[starts, len(users)])
    rank = np.arange(len(users)) - np.repeat(starts, lengths)
    row_of = np.searchsorted(users[starts], positions)
    for row, at in enumerate(row_of):
        if at < len(starts) and users[starts[at]] == positions[row]:
            piece = slice(starts[at], starts[at] + lengths[at])
            found[row, rank[piece]], values[row, rank[piece]] = items[piece], scores[piece]
    return found, values
