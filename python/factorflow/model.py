"""The methods of a fitted model, and `load`."""

import numpy as np

from ._base import Base
from ._recommend import Recommending
from ._update import Updating


class Model(Recommending, Updating, Base):
    """A trainer and its model."""

    @property
    def rank(self):
        """The number of factors of a user and an item."""
        return self._fitted.rank

    @property
    def user_ids(self):
        """The users: row numbers of the matrix, or the ids in ascending order."""
        return _ids_of(self._fitted.users)

    @property
    def item_ids(self):
        """The items: column numbers of the matrix, or the ids in ascending order."""
        return _ids_of(self._fitted.items)

    @property
    def user_factors(self):
        """float32, users x rank, in the order of `user_ids`; for reading."""
        state = self._fitted
        return _factors(state.users, state.rank)

    @property
    def item_factors(self):
        """float32, items x rank, in the order of `item_ids`; for reading."""
        state = self._fitted
        return _factors(state.items, state.rank)

    @property
    def global_mean(self):
        """The mean that every prediction contains; 0 without biases."""
        return self._fitted.mean

    @property
    def user_biases(self):
        """float32, in the order of `user_ids`; None without biases."""
        state = self._fitted
        if not state.has_biases:
            return None
        side = state.users
        return _readonly(side.ids.rows(side.features[:, state.rank] - np.float32(state.mean)))

    @property
    def item_biases(self):
        """float32, in the order of `item_ids`; None without biases."""
        state = self._fitted
        if not state.has_biases:
            return None
        return _readonly(state.items.ids.rows(state.items.features[:, state.rank + 1]))


def _factors(side, rank):
    return _readonly(side.ids.rows(np.ascontiguousarray(side.features[:, :rank])))


def _readonly(values):
    values.flags.writeable = False
    return values


def _ids_of(side):
    return side.ids.labels if side.ids.count is None else np.arange(side.ids.count)


def load(path, **machine):
    """The model in a folder that this package, FactorFlow or Spark's ALSModel has saved.

    `machine`: device, num_threads, memory_budget and others of the constructors.
    """
    from .als import ALS
    from .sgd import SGD

    model = ALS(**machine)._load(path)
    metadata = model._state.head["metadata"]
    if metadata.get("algorithm") == "sgd":
        found = SGD(**machine)
        found.__dict__.update(_slot=model._slot, _state=model._state)
        model = found
    trained = metadata.get("params") or {}
    names = {"factors": "rank", "regularization": "regParam", "iterations": "maxIter", "random_state": "seed"}
    if trained.get("implicitPrefs"):
        names.update(implicit="implicitPrefs", alpha="alpha")
    model._params = {
        ours: trained[theirs] for ours, theirs in names.items() if trained.get(theirs) is not None
    }
    return model
