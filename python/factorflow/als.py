"""Alternating least squares."""

from . import _names
from .model import Model


class ALS(Model):
    """Alternating least squares, on ratings or, with implicit=True, on clicks, plays and purchases.

    Names are implicit's where it has the parameter. A parameter that is None has FactorFlow's default,
    which is not implicit's: see docs/python.md.

    factors (or rank): 10. regularization (reg_param): λ, multiplied by the number of ratings of the row.
    iterations (max_iter): 10. random_state (seed): 0; the same seed gives the same model. alpha, weight,
    unobserved_weight: for implicit=True. biases: True, and False for implicit data. solver: 'auto',
    'cholesky', 'cg'. num_threads: 0 for all cores. device: 'auto', 'cpu', 'gpu'. memory_budget: '4GiB'.
    Further ones: cg_steps, nonnegative, reg_offset, reg_exponent, bias_damping, start, precision, kernel,
    early_stop, early_stop_metric, target_rmse, on_duplicates, on_bad_rows, partition_users,
    partition_items, partition_sums, partition_groups, device_memory, spill_dir.
    """

    _algorithm = "als"
    _table = _names.ALS

    def __init__(
        self,
        factors=None,
        regularization=None,
        alpha=None,
        *,
        implicit=None,
        iterations=None,
        random_state=None,
        biases=None,
        weight=None,
        unobserved_weight=None,
        solver=None,
        cg_steps=None,
        nonnegative=None,
        num_threads=None,
        device=None,
        memory_budget=None,
        **options,
    ):
        super().__init__(locals())
