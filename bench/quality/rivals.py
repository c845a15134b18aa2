"""Trains one Python library on ratings of Parquet files, for bench/quality/time-to-quality.ts.

    python rivals.py REQUEST          REQUEST: JSON

| member | meaning |
|---|---|
| library | a name of LIBRARIES |
| train, test | files or folders of Parquet: user, item, rating |
| rank, iterations | factors; increasing numbers of iterations after which the quality is measured |
| settings | arguments of the library's model |
| implicit | ndcg@20 instead of the RMSE |
| save | a file: only train with the last number of iterations and write the factors there |

Its last line is a JSON list of {iterations, seconds, quality}. The seconds are of `fit` from data in memory
in the form that the library takes, without measuring. A library without a callback is trained anew for each number.
Pairs of the test of users or items without training ratings are left out.
"""
import contextlib
import json
import math
import sys
from time import perf_counter

import numpy
import pyarrow.parquet
from scipy.sparse import coo_matrix, csr_matrix

SEED = 1
THREADS = 2
# A course ends when this many measurements in turn were no better than the best.
PATIENCE = 2


class PastBest(Exception):
    pass


class Ratings:
    """Users and items numbered from 0 in the order of their ids; the test pairs that training knows."""

    def __init__(self, train, test):
        users, items, self.values = columns_of(train)
        user_ids, self.rows = numpy.unique(users, return_inverse=True)
        item_ids, self.columns = numpy.unique(items, return_inverse=True)
        self.values = self.values.astype(numpy.float32)
        self.shape = (len(user_ids), len(item_ids))
        if test is None:
            return
        users, items, values = columns_of(test)
        known = numpy.isin(users, user_ids) & numpy.isin(items, item_ids)
        self.test_rows = numpy.searchsorted(user_ids, users[known])
        self.test_columns = numpy.searchsorted(item_ids, items[known])
        self.test_values = values[known]

    def coo(self):
        return coo_matrix((self.values, (self.rows, self.columns)), self.shape)

    def csr(self):
        return csr_matrix((self.values, (self.rows, self.columns)), self.shape)


def columns_of(path):
    table = pyarrow.parquet.read_table(path, columns=["user", "item", "rating"])
    return [table[name].to_numpy() for name in ("user", "item", "rating")]


class Factors:
    """A model: level + biases + the product of the factors, limited to `scale` if the library does so."""

    def __init__(self, users, items, level=0.0, user_biases=None, item_biases=None, scale=None):
        self.users, self.items, self.level, self.scale = users, items, level, scale
        self.user_biases, self.item_biases = user_biases, item_biases

    def predict(self, rows, columns):
        sums = numpy.einsum("ij,ij->i", self.users[rows], self.items[columns]) + self.level
        if self.user_biases is not None:
            sums = sums + self.user_biases[rows] + self.item_biases[columns]
        return sums if self.scale is None else numpy.clip(sums, *self.scale)

    def rmse(self, ratings):
        errors = self.predict(ratings.test_rows, ratings.test_columns) - ratings.test_values
        return math.sqrt((errors.astype(numpy.float64) ** 2).mean())

    def ndcg(self, ratings, k=20):
        """Mean over the users of the test, over all items that they do not have in training."""
        asked = numpy.unique(ratings.test_rows)
        known = ratings.csr()
        positives = csr_matrix(
            (numpy.ones(len(ratings.test_rows)), (ratings.test_rows, ratings.test_columns)), ratings.shape
        )
        discount = 1 / numpy.log2(numpy.arange(k) + 2)
        ideal = numpy.cumsum(discount)
        total = 0.0
        for start in range(0, len(asked), 1000):
            some = asked[start : start + 1000]
            scores = self.users[some] @ self.items.T
            scores[known[some].nonzero()] = -numpy.inf
            best = numpy.argpartition(-scores, k, axis=1)[:, :k]
            order = numpy.argsort(-numpy.take_along_axis(scores, best, 1), axis=1, kind="stable")
            best = numpy.take_along_axis(best, order, 1)
            wanted = positives[some]
            hits = numpy.take_along_axis(wanted.toarray() > 0, best, 1)
            counts = numpy.minimum(numpy.diff(wanted.indptr), k)
            total += ((hits * discount).sum(1) / ideal[counts - 1]).sum()
        return total / len(asked)


def implicit_als(ratings, request, measure):
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=request["rank"],
        iterations=request["iterations"][-1],
        random_state=SEED,
        num_threads=THREADS,
        **request["settings"],
    )
    matrix = ratings.csr()
    away = 0.0
    start = perf_counter()

    def after(iteration, *_):
        nonlocal away
        now = perf_counter()
        if iteration + 1 in request["iterations"]:
            measure(iteration + 1, now - start - away, Factors(model.user_factors, model.item_factors))
        away += perf_counter() - now

    model.fit(matrix, show_progress=False, callback=after)


def cmfrec_als(ratings, request, measure):
    from cmfrec import CMF, CMF_implicit

    matrix = ratings.coo()
    make = CMF_implicit if request["implicit"] else CMF
    for iterations in request["iterations"]:
        model = make(
            k=request["rank"],
            niter=iterations,
            nthreads=THREADS,
            verbose=False,
            precompute_for_predictions=False,
            **({} if request["implicit"] else {"method": "als"}),
            **request["settings"],
        )
        start = perf_counter()
        model.fit(matrix)
        seconds = perf_counter() - start
        if request["implicit"]:
            measure(iterations, seconds, Factors(model.A_, model.B_))
            continue
        biases = (model.user_bias_, model.item_bias_)
        measure(iterations, seconds, Factors(model.A_, model.B_, model.glob_mean_, *biases))


def surprise_svd(ratings, request, measure):
    import pandas
    from surprise import SVD, Dataset, Reader

    scale = (float(ratings.values.min()), float(ratings.values.max()))
    frame = pandas.DataFrame({"user": ratings.rows, "item": ratings.columns, "rating": ratings.values})
    train = Dataset.load_from_df(frame, Reader(rating_scale=scale)).build_full_trainset()
    users = [train.to_inner_uid(row) for row in range(ratings.shape[0])]
    items = [train.to_inner_iid(column) for column in range(ratings.shape[1])]
    for iterations in request["iterations"]:
        model = SVD(
            n_factors=request["rank"], n_epochs=iterations, random_state=SEED, **request["settings"]
        )
        start = perf_counter()
        model.fit(train)
        seconds = perf_counter() - start
        biases = (model.bu[users], model.bi[items])
        factors = Factors(model.pu[users], model.qi[items], train.global_mean, *biases, scale)
        measure(iterations, seconds, factors)


def libmf_sgd(ratings, request, measure):
    from libmf import mf

    triples = numpy.stack([ratings.rows, ratings.columns, ratings.values], 1).astype(numpy.float32)
    settings = dict(request["settings"])
    penalty = settings.pop("lambda")
    for iterations in request["iterations"]:
        model = mf.MF(
            k=request["rank"],
            nr_iters=iterations,
            nr_threads=THREADS,
            lambda_p1=0.0,
            lambda_q1=0.0,
            lambda_p2=penalty,
            lambda_q2=penalty,
            quiet=True,
            **settings,
        )
        start = perf_counter()
        model.fit(triples)
        seconds = perf_counter() - start
        # Not by its own predict, which in this version gives the pairs other users than asked for.
        measure(iterations, seconds, Factors(model.p_factors(), model.q_factors()))


LIBRARIES = {
    "implicit": implicit_als,
    "cmfrec": cmfrec_als,
    "Surprise SVD": surprise_svd,
    "libmf": libmf_sgd,
}


def main(request):
    ratings = Ratings(request["train"], None if "save" in request else request["test"])
    course = []

    def measure(iterations, seconds, model):
        quality = float(model.ndcg(ratings) if request["implicit"] else model.rmse(ratings))
        course.append({"iterations": iterations, "seconds": seconds, "quality": quality})
        qualities = [point["quality"] * (1 if request["implicit"] else -1) for point in course]
        if len(qualities) - qualities.index(max(qualities)) > PATIENCE:
            raise PastBest

    def save(iterations, _, model):
        if iterations == request["iterations"][-1]:
            numpy.savez(request["save"], users=model.users, items=model.items)

    train = LIBRARIES[request["library"]]
    if "save" in request:
        train(ratings, {**request, "iterations": request["iterations"][-1:]}, save)
    else:
        with contextlib.suppress(PastBest):
            train(ratings, request, measure)
    print(json.dumps(course))


main(json.loads(sys.argv[1]))
