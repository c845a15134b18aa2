"""
The same seed gives the model of Spark's own ALS but for rounding: predictions within 0.01 % and factors within
0.1 %, as docs/spark.md promises. The runner starts local[2].
"""

import math

import pytest
from pyspark.ml.recommendation import ALS

from support import BLOCKS, factors, plain, planted


@pytest.fixture(scope="module")
def short(spark):
    """Users of twelve ratings, near the rank: six steps of conjugate gradients leave an error there."""
    rows = planted(users=200, items=100, each=12)
    return spark.createDataFrame(rows, "user int, item int, rating float").repartition(2).cache()


def difference(own, found):
    """Root mean square of the differences, divided by that of Spark's own numbers."""
    squares = sum((one - other) ** 2 for one, other in zip(own, found))
    return math.sqrt(squares / sum(one**2 for one in own))


def predictions(model, pairs):
    return [row.prediction for row in model.transform(pairs).orderBy("user", "item").collect()]


def numbers(side):
    return [value for key in sorted(side) for value in side[key]]


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("lambda_", [0.001, 0.01, 0.1, 1.0])
def test_predictions_and_factors_are_sparks(short, lambda_, implicit):
    als = ALS(rank=10, regParam=lambda_, implicitPrefs=implicit, seed=1, **BLOCKS)
    own, found = plain(als).fit(short), als.fit(short)
    assert difference(predictions(own, short), predictions(found, short)) < 1e-4
    for one, other in zip(factors(own), factors(found)):
        assert one.keys() == other.keys()
        assert difference(numbers(one), numbers(other)) < 1e-3
