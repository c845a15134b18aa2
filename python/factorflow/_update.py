"""Later ratings: fold-in, updates and evaluation."""

import re
import warnings

import numpy as np
import pyarrow as pa

from ._errors import DataError, FactorFlowWarning, UsageError
from ._ids import Ids
from ._liked import matrix_entries, rating_batch
from ._matrix import is_matrix
from ._recommend import ask_with
from ._state import Side, State, read_factors, received

_IMPLICIT_NOTE = (
    "the model is of implicit data: it predicts preferences from 0 to 1, and their errors (rmse, mae) say "
    "little. Measure it with evaluate_ranking"
)
_COLUMNS = ("user", "item", "rating")


class Updating:
    """Methods of a fitted model that take ratings that it was not trained on."""

    def partial_fit(self, ratings, *, user="user", item="item", rating="rating", **params):
        """Continues from this model with new ratings, also of new users and items; returns the model.

        Users and items without new ratings keep their factors. `params`: iterations, learning_rate and others
        of SGD, by which it is done.
        """
        from . import _names

        for name in params:
            if name not in _names.SGD:
                raise _names.unknown(name, [*_names.SGD], "partial_fit")
        state = self._fitted
        source = self._same_form(ratings, (user, item, rating))
        shape = _union(self._shape, source.shape)
        request = {"type": "update", "ratings": "ratings"}
        request["params"] = _names.javascript_params(params, _names.SGD, "partial_fit")
        with self._slot.lock:
            worker = self._worker()
            self._send_data(worker, "ratings", source)
            self._slot.holds = None
            answer, frames = worker.request(request)
            dtypes = (state.users.ids.dtype, state.items.ids.dtype)
            self._hold(received(answer["model"], frames, shape, dtypes), shape)
            worker.request({"type": "forget", "name": "ratings"})
        keeps = self._sources is not None and not source.once
        self._sources, self._liked = [*self._sources, source] if keeps else None, None
        return self

    def partial_fit_users(self, userids, user_items):
        """Solves users from their ratings with unchanged items, and puts them into the model; returns it.

        `userids`: ids, also new ones. `user_items`: a csr matrix with a row for each; its columns are items
        in the order of `item_ids`.
        """
        state = self._fitted
        users = np.atleast_1d(np.asarray(userids))
        entries = matrix_entries(self._user_items(user_items, len(users)), state)
        if len(np.unique(users)) != len(users):
            raise UsageError("userids has an id twice")
        held = {"ratings": rating_batch(state, *entries)}
        _, frames = self._ask(lambda worker: ask_with(worker, {"type": "fold-in"}, held))
        rows, features = read_factors(frames, state.head["features"])
        merged = _merged(state.users, users[rows.to_numpy()], features)
        shape = self._shape
        if shape is not None:
            shape = (merged.ids.count, shape[1])
        with self._slot.lock:
            self._hold(State(dict(state.head), merged, state.items), shape)
            self._slot.holds = None
        self._sources, self._liked = None, None
        return self

    def evaluate(self, ratings, *, user="user", item="item", rating="rating"):
        """Errors of the predictions of ratings: {'rmse', 'mae', 'pairs', 'cold_pairs', ...}.

        A model of implicit data predicts preferences from 0 to 1, so a FactorFlowWarning says that its errors
        mean little: use `evaluate_ranking`.
        """
        if (self._fitted.head["metadata"].get("params") or {}).get("implicitPrefs"):
            warnings.warn(_IMPLICIT_NOTE, FactorFlowWarning, stacklevel=2)
        return self._evaluate({}, {"ratings": self._same_form(ratings, (user, item, rating))})

    def evaluate_ranking(
        self, ratings, train=None, *, k=10, user="user", item="item", rating="rating", **options
    ):
        """Measures full rankings against test ratings: {'metrics': {'ndcg@10': ...}, ...}.

        `train`: ratings that are not ranked; by default the ratings of `fit`, if the model has them.
        `options`: metrics, min_rating, resamples, seed, baselines, cold_pairs, rank_users of FactorFlow.
        """
        names = (user, item, rating)
        held = {"ratings": self._same_form(ratings, names)}
        if train is not None:
            held["exclude"] = self._same_form(train, names)
        elif self._sources is not None and len(self._sources) == 1:
            held["exclude"] = self._sources[0]
        ranking = {_camel(name): value for name, value in {"k": k, **options}.items()}
        return self._evaluate({"ranking": ranking}, held)

    def _evaluate(self, request, held):
        def ask(worker):
            for name, source in held.items():
                self._send_data(worker, name, source)
            answer, _ = worker.request({"type": "evaluate", **request, **{name: name for name in held}})
            for name in held:
                worker.request({"type": "forget", "name": name})
            return answer

        answer = self._ask(ask)
        return _snake(answer["metrics"])

    @property
    def _shape(self):
        state = self._fitted
        return None if state.users.ids.count is None else (state.users.ids.count, state.items.ids.count)

    def _same_form(self, ratings, names):
        """Ratings with ids of the model's form. Raises UsageError for a matrix if the model has labels."""
        self._fitted
        if is_matrix(ratings) and self._shape is None:
            raise UsageError(
                "the model has the ids of a table, and a matrix has numbers of rows: give a table"
            )
        return self._ratings_of(ratings, names)


def _union(own, given):
    if own is None:
        return None
    return own if given is None else tuple(max(pair) for pair in zip(own, given))


def _merged(side, ids, features):
    """A side with other features of some ids, of which some may be new."""
    own = side.ids
    at = own.find(ids)
    known = at >= 0
    everything = side.features.copy()
    everything[at[known]] = features[known]
    if known.all():
        return Side(own, everything, side.numbers)
    added = [str(one) for one in ids[~known]] if own.is_text else ids[~known]
    labels = np.concatenate([own.labels, np.asarray(added, own.dtype)])
    order = np.argsort(labels, kind="stable")
    try:
        column = pa.array(labels[order], own.column.type)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DataError(f"an id does not fit the model's {own.column.type}: {error}") from error
    count = None if own.count is None else max(own.count, int(labels.max()) + 1)
    numbers = {
        name: np.concatenate([values, np.zeros(len(labels) - len(values), np.float32)])[order]
        for name, values in side.numbers.items()
    }
    return Side(Ids(column, count, own.dtype), np.concatenate([everything, features[~known]])[order], numbers)


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
