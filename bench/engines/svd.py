"""Test RMSE of scikit-surprise's SVD with 10 factors.

svd.py TRAIN TEST SEED; TRAIN and TEST are folders of Parquet files with user, item, rating.
"""
import math
import sys

import pandas as pd
from surprise import SVD, Dataset, Reader

train, test = (pd.read_parquet(path)[["user", "item", "rating"]] for path in sys.argv[1:3])
scale = Reader(rating_scale=(train.rating.min(), train.rating.max()))
model = SVD(n_factors=10, random_state=int(sys.argv[3]))
model.fit(Dataset.load_from_df(train, scale).build_full_trainset())
known = test[test.user.isin(train.user) & test.item.isin(train.item)]
errors = [model.predict(user, item).est - rating for user, item, rating in known.itertuples(index=False)]
print(math.sqrt(sum(error * error for error in errors) / len(errors)))
