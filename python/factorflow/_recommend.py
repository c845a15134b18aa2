"""Recommendations, similar rows and predictions."""

import numpy as np
import pyarrow as pa

from ._errors import DataError, UsageError
from ._histories import matrix_entries, pair_batch, rating_batch
from ._ids import as_json
from ._matrix import MatrixRatings, is_matrix

# At most the number of items of one list.
_MOST = 1000

# At most this number of users is named in the request itself.
_FEW = 256


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
        `user_items`, so that they need not be known. Rows of several users that are short end with -1
        (text: None) and -inf. Users with factors of 0 get none: they have rated only items that are new, too.
        """
        state = self._fitted
        single = np.ndim(userid) == 0
        users = state.users.ids.given(userid, "user")
        n = _count(N, len(state.items.ids))
        entries = None if user_items is None else entries_of(state, user_items, len(users))
        request = {"type": "recommend", "n": n, **_lists(state, filter_items, items)}
        if recalculate_user:
            if entries is None:
                raise UsageError("recalculate_user needs user_items, the ratings to solve the users from")
            # The worker knows such users by their rows in the request.
            positions = np.arange(len(users))
            found = self._recommend_solved(state, request, entries, filter_already_liked_items)
        else:
            positions = state.users.ids.require(users, "user")
            liked = None
            if filter_already_liked_items:
                own = entries is None
                liked = _liked_of(state, positions) if own else (positions[entries[0]], entries[1])
            found = self._recommend_known(state, request, positions, liked)
        ids, scores = _matrices(positions, found, n, state.items.ids)
        if not single:
            return state.items.ids.at(ids), scores
        known = ids[0] >= 0
        return state.items.ids.at(ids[0][known]), scores[0][known]

    def similar_items(self, itemid, N=10):
        """The N items most similar to an item by cosine, itself first, as arrays (ids, similarities).

        Of several items two matrices. Biases are not compared.
        """
        state = self._fitted
        return self._similar(state, "items", state.items.ids, itemid, N)

    def similar_users(self, userid, N=10):
        """The N users most similar to a user by cosine, itself first, as arrays (ids, similarities)."""
        state = self._fitted
        return self._similar(state, "users", state.users.ids, userid, N)

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

    def _recommend_known(self, state, request, positions, liked):
        """Rows (user, item, score) by position of known users. `liked`: pairs of positions to leave out."""
        asked = np.unique(positions[positions >= 0])
        asked = asked[state.users.features[asked].any(axis=1)]
        if len(asked) == 0:
            return _NO_ROWS
        held = {}
        if liked is not None and len(asked) == 1:
            request["deny"] = [*request.get("deny", []), *as_json(state.items.ids.labels[liked[1]])]
        elif liked is not None:
            held["exclude"] = pair_batch(state, *liked)
        if len(asked) <= _FEW:
            request["users"] = as_json(state.users.ids.labels[asked])
        else:
            held["users"] = pa.record_batch([state.users.ids.take(asked)], ["user"])
        _, frames = self._ask(state, lambda worker: ask_with(worker, request, held))
        return _rows(frames, state.users.ids, state.items.ids)

    def _recommend_solved(self, state, request, entries, excluding):
        """Rows (user, item, score) of users solved from ratings; users are numbers of rows."""
        held = {"ratings": rating_batch(state, *entries)}
        if excluding:
            request["exclude"] = "ratings"
        _, frames = self._ask(state, lambda worker: ask_with(worker, request, held))
        return _rows(frames, None, state.items.ids)

    def _similar(self, state, side, ids, given, count):
        single = np.ndim(given) == 0
        positions = ids.require(ids.given(given, side[:-1]), side[:-1])
        n = _count(count, len(ids))
        found = _NO_ROWS
        asked = np.unique(positions[positions >= 0])
        if n > 1 and len(asked) > 0:
            request = {"type": "similar", "side": side, "n": n - 1, "ids": as_json(ids.labels[asked])}
            _, frames = self._ask(state, lambda worker: worker.request(request))
            found = _rows(frames, ids, ids)
        rest, similarities = _matrices(positions, found, n - 1, ids)
        own = np.where(positions >= 0, np.float32(1), np.float32(-np.inf))
        rows = ids.at(np.column_stack([positions, rest]))
        scores = np.column_stack([own, similarities]).astype(np.float32)
        return (rows[0], scores[0]) if single else (rows, scores)


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
    """Rated pairs of some users, by position. Raises UsageError if the model does not have them."""
    if state.histories is None:
        raise UsageError(
            "the model does not have the ratings of its training, which were a stream or are not saved: "
            "give user_items, or filter_already_liked_items=False"
        )
    return state.histories.pairs(np.unique(positions[positions >= 0]))[:2]


def _lists(state, filter_items, items):
    found = {}
    for name, given in {"deny": filter_items, "allow": items}.items():
        if given is not None:
            values = state.items.ids.given(given, "item")
            state.items.ids.require(values, "item")
            found[name] = as_json(values)
    return found


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
