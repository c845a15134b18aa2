"""
Cases of Spark's ALSSuite whose outcome depends on the random start: ratings, parameters, and the largest
error that the suite allows. `test_als_cases.py` and `test_als_seeds.py` run them.
"""

import math
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
from pyspark.ml.recommendation import ALS

RATINGS = "user int, item int, rating float"
Ratings = namedtuple("Ratings", ["training", "test"])


class JavaRandom:
    """The generator that java.util.Random's documentation specifies; the suite draws its data with it."""

    def __init__(self, seed):
        self.state = (seed ^ 0x5DEECE66D) % 2**48
        self.second_gaussian = None

    def bits(self, count):
        self.state = (self.state * 0x5DEECE66D + 0xB) % 2**48
        return self.state >> (48 - count)

    def int32(self):
        value = self.bits(32)
        return value - 2**32 if value >= 2**31 else value

    def float32(self):
        return self.bits(24) / 2**24

    def float64(self):
        return ((self.bits(26) << 27) + self.bits(27)) / 2**53

    def gaussian(self):
        if self.second_gaussian is not None:
            value, self.second_gaussian = self.second_gaussian, None
            return value
        while True:
            x, y = 2 * self.float64() - 1, 2 * self.float64() - 1
            square = x * x + y * y
            if 0 < square < 1:
                break
        scale = math.sqrt(-2 * math.log(square) / square)
        self.second_gaussian = y * scale
        return x * scale


def factor_rows(count, rank, draw):
    """`count` random int32 ids in ascending order, each with `rank` float32 values from -1 to 1."""
    ids = set()
    while len(ids) < count:
        ids.add(draw.int32())
    one = np.float32(1)
    return [
        (key, [np.float32(draw.float32()) * np.float32(2) - one for _ in range(rank)]) for key in sorted(ids)
    ]


def dot(x, y):
    return sum((a * b for a, b in zip(x, y)), np.float32(0))


def explicit_ratings(users, items, rank, noise=0.0, seed=11):
    """Products of random factors: 60 % of the pairs with Gaussian noise to train, 30 % without to test."""
    draw = JavaRandom(seed)
    sides = factor_rows(users, rank, draw), factor_rows(items, rank, draw)
    found = Ratings([], [])
    for user, x in sides[0]:
        for item, y in sides[1]:
            share = draw.float64()
            if share < 0.6:
                found.training.append((user, item, float(dot(x, y) + np.float32(noise * draw.gaussian()))))
            elif share < 0.9:
                found.test.append((user, item, float(dot(x, y))))
    return found


def implicit_ratings(users, items, rank, noise=0.0, seed=11):
    """As `explicit_ratings`, of the observed pairs: 80 % of the positive ones, 20 % of the others."""
    draw = JavaRandom(seed)
    sides = factor_rows(users, rank, draw), factor_rows(items, rank, draw)
    found = Ratings([], [])
    for user, x in sides[0]:
        for item, y in sides[1]:
            rating = dot(x, y)
            if draw.float64() >= (0.8 if rating > 0 else 1.0 - 0.8):
                continue
            share = draw.float64()
            if share < 0.6:
                found.training.append((user, item, float(rating + np.float32(noise * draw.gaussian()))))
            elif share < 0.9:
                found.test.append((user, item, float(rating)))
    return found


EXACT_1 = explicit_ratings(20, 40, 1)
NEAR_1 = explicit_ratings(20, 40, 1, noise=0.01)
NEAR_2 = explicit_ratings(20, 40, 2, noise=0.01)
SMALL = explicit_ratings(4, 4, 1)
IMPLICIT = implicit_ratings(20, 40, 2, noise=0.01)


@dataclass(frozen=True)
class Case:
    """A fit whose error on the test pairs must be below `target`; other parameters are Spark's defaults."""

    name: str
    data: Ratings
    target: float
    params: dict = field(hash=False)

    def error(self, fit, spark, seed):
        """The error with an initial seed, where `fit` is a function of an ALS and ratings."""
        als = ALS(**{"numUserBlocks": 2, "numItemBlocks": 3, "seed": seed, **self.params})
        model = fit(als, spark.createDataFrame(self.data.training, RATINGS))
        test = spark.createDataFrame(self.data.test, RATINGS)
        rows = model.transform(test).select("rating", "prediction").collect()
        return preference_error(rows, als.getAlpha()) if als.getImplicitPrefs() else rmse_of(rows)


def rmse_of(rows):
    return math.sqrt(sum((rating - prediction) ** 2 for rating, prediction in rows) / len(rows))


def preference_error(rows, alpha):
    """RMSE of ratings and predictions cut to 0 to 1, weighted by 1 + alpha |rating|."""
    cut = lambda value: min(max(value, 0.0), 1.0)
    weights = [1 + alpha * abs(rating) for rating, _ in rows]
    squares = [(cut(prediction) - cut(rating)) ** 2 for rating, prediction in rows]
    return math.sqrt(sum(w * e for w, e in zip(weights, squares)) / sum(weights))


def blocks(users, items):
    params = {"rank": 3, "regParam": 0.01, "numUserBlocks": users, "numItemBlocks": items}
    return Case(f"{users} x {items} blocks", NEAR_2, 0.03, params)


CASES = [
    Case("exact rank 1, rank 1", EXACT_1, 0.001, {"rank": 1, "regParam": 1e-5}),
    Case("exact rank 1, rank 2", EXACT_1, 0.001, {"rank": 2, "regParam": 1e-5}),
    Case("near rank 1, rank 1", NEAR_1, 0.02, {"rank": 1, "regParam": 0.01}),
    Case("near rank 1, rank 2", NEAR_1, 0.02, {"rank": 2, "regParam": 0.01}),
    Case("near rank 2, rank 2", NEAR_2, 0.03, {"rank": 2, "regParam": 0.01}),
    Case("near rank 2, rank 3", NEAR_2, 0.03, {"rank": 3, "regParam": 0.01}),
    *(blocks(users, items) for users in (1, 2) for items in (1, 2)),
    Case(
        "more blocks than ratings",
        SMALL,
        0.002,
        {"rank": 1, "regParam": 1e-4, "numUserBlocks": 5, "numItemBlocks": 5},
    ),
    Case("implicit", IMPLICIT, 0.3, {"rank": 2, "regParam": 0.01, "implicitPrefs": True}),
]
