"""ndcg@20 of implicit's ALS by default, for bench/cases/implicit.ts: with the values as they are, or with log(1 + r).

    python implicit.py TRAIN_FOLDER TEST_FOLDER values|log

Prints the mean over the users of the test pairs that training knows, items of training left out.
"""
import sys

import numpy
import pyarrow.parquet
from implicit.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix


def read(folder):
    table = pyarrow.parquet.read_table(folder)
    return [table[name].to_numpy() for name in ("user", "item", "rating")]


users, items, ratings = read(sys.argv[1])
test_users, test_items, _ = read(sys.argv[2])
user_ids, rows = numpy.unique(users, return_inverse=True)
item_ids, columns = numpy.unique(items, return_inverse=True)
known = numpy.isin(test_users, user_ids) & numpy.isin(test_items, item_ids)
test_rows = numpy.searchsorted(user_ids, test_users[known])
test_columns = numpy.searchsorted(item_ids, test_items[known])
pairs = numpy.unique(numpy.stack([test_rows, test_columns], 1), axis=0)
asked = numpy.unique(pairs[:, 0])
if len(asked) > 5000:
    asked = numpy.sort(numpy.random.default_rng(0).choice(asked, 5000, replace=False))
discount = 1 / numpy.log2(numpy.arange(20) + 2)


def ndcg(values):
    matrix = csr_matrix((values.astype(numpy.float32), (rows, columns)))
    model = AlternatingLeastSquares(random_state=0)
    model.fit(matrix, show_progress=False)
    found, _ = model.recommend(asked, matrix[asked], N=20, filter_already_liked_items=True)
    positives = {}
    for row, column in pairs:
        positives.setdefault(row, set()).add(column)
    total = 0.0
    for at, row in enumerate(asked):
        hits = numpy.array([column in positives[row] for column in found[at]])
        total += (hits * discount[: len(hits)]).sum() / discount[: min(20, len(positives[row]))].sum()
    return total / len(asked)


print(ndcg(ratings if sys.argv[3] == "values" else numpy.log1p(ratings)))
