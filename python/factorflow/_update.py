"""Later ratings: fold-in, updates and evaluation."""

import re
import warnings

import numpy as np

from ._errors import DataError, FactorFlowWarning, UsageError
from ._histories import Histories, NewRatings, SavedRatings, rating_batch
from ._ids import plain
from ._matrix import is_matrix
from ._recommend import ask_with, entries_of
from ._state import Side, State, read_factors, received, with_shape

_COLUMNS = ("user", "item", "rating")


class Updating:
    """Methods of a fitted model that take ratings that it was not trained on."""

    def partial_fit(
        self,
        ratings,
        *,
        user="user",
        item="item",
        rating="rating",
        timestamp="timestamp",
        again=False,
        **params,
    ):
        """Continues from this model with new ratings, also of new users and items; returns the model.

        Users and items without new ratings keep their factors. `params`: iterations, learning_rate and others
        of SGD, by which it is done. Ratings that the model has already, with the same value, are left out
        with a FactorFlowWarning, since applying a batch twice makes a model worse; of implicit data, where an
        event may repeat, only if they are the whole batch. again=True applies them.
        """
        from . import _names

        for name in params:
            if name not in _names.SGD:
                raise _names.unknown(name, [*_names.SGD], "partial_fit")
        request = {"type": "update", "ratings": "ratings"}
        request["params"] = _names.javascript_params(params, _names.SGD, "partial_fit")
        columns = self._columns(user, item, rating, timestamp, params.get("on_duplicates"))
        with self._updating():
            state = self._fitted
            source = self._same_form(state, ratings, columns)
            if not again:
                source = _new_ratings(state, source)
            if source.rows == 0:
                return self
            with self._slot.lend(self._flags(), state) as lent:
                worker = lent.worker
                self._send_data(worker, "ratings", source)
                answer, frames = worker.request(request)
                dtypes = (state.users.ids.dtype, state.items.ids.dtype)
                updated = received(answer["model"], frames, _union(state.shape, source.shape), dtypes)
                worker.request({"type": "forget", "name": "ratings"})
                lent.holds = updated
            if state.histories is not None and not source.once:
                added = Histories.of([source], updated).pairs(np.arange(len(updated.users.ids)))
                last = not _is_implicit(state)
                updated.histories = state.histories.continued(state, updated, added, last=last)
            _warn_of_unsolved(state, updated)
            self._state = updated
        return self

    def partial_fit_users(self, userids, user_items):
        """Solves users from their ratings with unchanged items, and puts them into the model; returns it.

        `userids`: ids, also new ones. `user_items`: a csr matrix with a row for each; its columns are items
        in the order of `item_ids`.
        """
        with self._updating():
            state = self._fitted
            users = state.users.ids.given(userids, "user")
            _require_new(state.users.ids, users)
            rows, items, ratings = entries_of(state, user_items, len(users))
            held = {"ratings": rating_batch(state, rows, items, ratings)}
            _, frames = self._ask(state, lambda worker: ask_with(worker, {"type": "fold-in"}, held))
            solved, features = read_factors(frames, state.head["features"])
            merged = _merged(state.users, users[solved.to_numpy()], features)
            shape = state.shape and (merged.ids.count, state.shape[1])
            updated = State(with_shape(state.head, shape), merged, state.items)
            if state.histories is not None:
                positions = merged.ids.find(users)
                added = (positions[rows], items, ratings)
                updated.histories = state.histories.continued(state, updated, added, replaced=positions)
            # The worker gets it with the next request.
            self._state = updated
        return self

    def evaluate(self, ratings, *, user="user", item="item", rating="rating"):
        """Errors of the predictions of ratings: {'rmse', 'mae', 'pairs', 'cold_pairs', ...}.

        A model of implicit data predicts preferences, not ratings: a UsageError names `evaluate_ranking`.
        """
        state = self._fitted
        if _is_implicit(state):
            raise UsageError("implicit data have no RMSE; measure rankings by evaluate_ranking")
        return self._evaluate(state, {}, {"ratings": self._same_form(state, ratings, (user, item, rating))})

    def evaluate_ranking(
        self, ratings, train=None, *, k=10, user="user", item="item", rating="rating", **options
    ):
        """Measures full rankings against test ratings: {'metrics': {'ndcg@10': ...}, ...}.

        `train`: ratings that are not ranked; by default what the model has of its users, from `fit`, updates
        or a saved model; False ranks everything. Raises UsageError if the model has nothing and `train` is
        not given. `options`: metrics, min_rating, resamples, seed, baselines, cold_pairs, rank_users of
        FactorFlow.
        """
        state = self._fitted
        names = (user, item, rating)
        held = {"ratings": self._same_form(state, ratings, names)}
        if train is None and state.histories is None:
            raise UsageError(
                "the model does not have the ratings of its training, which were a stream or are not saved, "
                "and would rank what users have already: give train, or train=False to rank everything"
            )
        if train is None:
            held["exclude"] = SavedRatings(state.histories, state)
        elif train is not False:
            held["exclude"] = self._same_form(state, train, names)
        ranking = {_camel(name): value for name, value in {"k": k, **options}.items()}
        return self._evaluate(state, {"ranking": ranking}, held)

    def _evaluate(self, state, request, held):
        def ask(worker):
            for name, source in held.items():
                self._send_data(worker, name, source)
            answer, _ = worker.request({"type": "evaluate", **request, **{name: name for name in held}})
            for name in held:
                worker.request({"type": "forget", "name": name})
            return answer

        answer = self._ask(state, ask)
        return _snake(answer["metrics"])

    def _same_form(self, state, ratings, names):
        """Ratings with ids of the model's form. Raises UsageError for a matrix if the model has labels."""
        if is_matrix(ratings) and state.shape is None:
            raise UsageError(
                "the model has the ids of a table, and a matrix has numbers of rows: give a table"
            )
        return self._ratings_of(ratings, names)


def _is_implicit(state):
    return bool((state.head["metadata"].get("params") or {}).get("implicitPrefs"))


def _new_ratings(state, source):
    """The ratings without those that the model has already."""
    if source.once or state.histories is None:
        return source
    new = NewRatings(source, state)
    known = source.rows - new.rows
    if known == 0 or (_is_implicit(state) and new.rows > 0):
        return source
    warnings.warn(
        f"{known} of {source.rows} ratings are in the model already, with the same value, and are left out: "
        "applying ratings twice makes a model worse. again=True applies them",
        FactorFlowWarning,
        stacklevel=3,
    )
    return new


def _warn_of_unsolved(before, after):
    unsolved = after.users.ids.labels[~after.users.features.any(axis=1)]
    unsolved = unsolved[before.users.ids.find(unsolved) < 0]
    if len(unsolved) > 0:
        warnings.warn(
            f"{len(unsolved)} new users, such as {plain(unsolved[0])!r}, have rated only items that are "
            "new, too: their factors are 0, and they get no recommendations",
            FactorFlowWarning,
            stacklevel=3,
        )


def _union(own, given):
    if own is None:
        return None
    return own if given is None else tuple(max(pair) for pair in zip(own, given))


def _require_new(own, ids):
    """Raises UsageError for an id that is given twice, DataError for one that the model cannot have."""
    ascending = np.sort(ids)
    if np.any(ascending[1:] == ascending[:-1]):
        raise UsageError("userids has an id twice")
    if own.is_text:
        return
    least, most = (-(2**63), 2**63 - 1) if own.count is None else (0, 2**31 - 2)
    outside = [one for one in ids if not least <= one <= most]
    if outside:
        kind = "numbers of rows" if own.count is not None else "whole numbers"
        raise DataError(
            f"user {outside[0]} cannot be added: the ids of the model's users are {kind} from {least} to "
            f"{most}"
        )


def _merged(side, ids, features):
    """A side with other features of some ids, of which some may be new."""
    own = side.ids
    at = own.find(ids)
    known = at >= 0
    everything = side.features.copy()
    everything[at[known]] = features[known]
    if known.all():
        return Side(own, everything, side.numbers)
    extended, order = own.extended(ids[~known])
    added = len(extended) - len(own)
    numbers = {
        name: np.concatenate([values, np.zeros(added, np.float32)])[order]
        for name, values in side.numbers.items()
    }
    return Side(extended, np.concatenate([everything, features[~known]])[order], numbers)


def _camel(name):
    return re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)


def _snake(value):
    """Results with Python's names."""
    if isinstance(value, dict):
        return {
            re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found.group(1).lower()}", key): _snake(one)
            for key, one in value.items()
        }
    return [_snake(one) for one in value] if isinstance(value, list) else value
