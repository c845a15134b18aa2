"""Stochastic gradient descent."""

from . import _names
from .model import Model


class SGD(Model):
    """Stochastic gradient descent on ratings: cheaper epochs than those of ALS, but more of them.

    factors (or rank): 10. regularization (reg_param): 0.02. iterations (max_iter): epochs, 20. learning_rate:
    0.08. random_state (seed): 0. biases: True. num_threads: 0 for all cores. device: 'auto', 'cpu', 'gpu'.
    memory_budget: '4GiB'. Further ones: decay, rate, schedule, reg_param_users, reg_param_items, reg_offset,
    bias_damping, precision, early_stop, early_stop_metric, target_rmse, on_duplicates, on_bad_rows,
    device_memory, spill_dir.
    """

    _algorithm = "sgd"
    _table = _names.SGD

    def __init__(
        self,
        factors=None,
        regularization=None,
        *,
        learning_rate=None,
        iterations=None,
        random_state=None,
        biases=None,
        num_threads=None,
        device=None,
        memory_budget=None,
        **options,
    ):
        super().__init__(locals())
