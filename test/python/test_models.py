"""Parameters, predictions, recommendations, similar rows, files, and later ratings."""

import pickle
import re
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sparse

import factorflow


def scores_of(model, user):
    return (
        model.global_mean
        + model.user_biases[user]
        + model.item_biases
        + model.item_factors.astype(np.float64) @ model.user_factors[user].astype(np.float64)
    )


def test_predictions_are_mean_biases_and_factors(model, triples):
    users, items, ratings = triples
    predicted = model.predict(users, items)
    assert predicted.dtype == np.float32
    np.testing.assert_allclose(
        predicted[:20], [scores_of(model, u)[i] for u, i in zip(users[:20], items[:20])], rtol=1e-5
    )
    errors = model.evaluate(triples)
    assert errors["pairs"] == len(users) and errors["cold_pairs"] == 0
    assert errors["rmse"] == pytest.approx(float(np.sqrt(np.mean((predicted - ratings) ** 2))), rel=1e-5)
    assert errors["rmse"] == pytest.approx(model.report_["iterations"][-1]["trainRmse"], rel=1e-4)
    assert errors["rmse"] < errors["baselines"]["damped_means"]["rmse"]
    assert model.predict(3, 9) == model.predict([3], [9])[0]
    assert np.isnan(model.predict([7, 999, 3], [9, 9, -1])).all()


def test_recommendations_are_the_best_unrated_items(model, matrix):
    for user in (0, 3, 59):
        scores = scores_of(model, user)
        scores[matrix[user].indices] = -np.inf
        scores[5] = -np.inf  # no ratings
        best = np.argsort(-scores, kind="stable")[:5]
        ids, values = model.recommend(user, N=5)
        assert list(ids) == list(best)
        np.testing.assert_allclose(values, scores[best], rtol=1e-5)
        np.testing.assert_array_equal(model.recommend(user, matrix[user], N=5)[0], ids)
    many, values = model.recommend(np.arange(60), N=5)
    assert many.shape == values.shape == (60, 5)
    np.testing.assert_array_equal(many[3], model.recommend(3, N=5)[0])
    assert many.mask[7].all() and values.mask[7].all() and not many.mask[3].any()
    np.testing.assert_array_equal(model.recommend([3, 0, 3], matrix[[3, 0, 3]], N=5)[0], many[[3, 0, 3]])


def test_many_users_are_those_of_single_requests(machine):
    draw = np.random.default_rng(1)
    ratings = (np.repeat(np.arange(600), 5), draw.integers(0, 50, 3000), draw.uniform(1, 5, 3000))
    with factorflow.ALS(factors=3, iterations=2, on_duplicates="mean", **machine).fit(ratings) as model:
        ids, scores = model.recommend(model.user_ids, N=7)
        for user in (0, 299, 599):
            single, values = model.recommend(user, N=7)
            np.testing.assert_array_equal(ids[user], single)
            np.testing.assert_allclose(scores[user], values, rtol=1e-5)


def test_lists_of_items(model, matrix):
    rated = matrix[3].indices
    ids, _ = model.recommend(3, N=40, filter_already_liked_items=False)
    assert len(ids) == 39 and set(rated) <= set(ids)
    assert set(model.recommend(3, N=40)[0]).isdisjoint(rated)
    best = ids[0]
    assert best not in model.recommend(3, N=40, filter_already_liked_items=False, filter_items=[best])[0]
    some = [1, 2, 3, 4]
    ranked, scores = model.rank_items(3, matrix[3], some)
    assert sorted(ranked) == some and list(scores) == sorted(scores, reverse=True)
    np.testing.assert_array_equal(
        model.recommend(3, N=4, filter_already_liked_items=False, items=some)[0], ranked
    )


def test_similar_rows(model, named):
    vectors = model.item_factors / np.maximum(
        np.linalg.norm(model.item_factors, axis=1, keepdims=True), 1e-12
    )
    cosines = vectors @ vectors[9]
    ids, similarities = model.similar_items(9, N=4)
    assert ids[0] == 9 and similarities[0] == 1
    assert list(ids) == list(np.argsort(-cosines)[:4])
    np.testing.assert_allclose(similarities, cosines[ids], rtol=1e-4)
    many, _ = model.similar_items([9, 2], N=4)
    np.testing.assert_array_equal(many[0], ids)
    assert model.similar_users([3], N=1)[0].tolist() == [[3]]
    order = np.argsort(-cosines)
    assert list(model.similar_items(9, N=3, filter_items=[9, order[2]])[0]) == list(order[[1, 3, 4]])
    assert list(model.similar_items(9, N=3, items=[9, order[5]])[0]) == [9, order[5]]
    assert model.similar_items([9, 5], N=2)[0].mask.tolist() == [[False] * 2, [True] * 2]
    assert named.similar_users("u03", N=2)[0][0] == "u03"


def test_a_user_given_by_ratings(model, matrix):
    ids, scores = model.recommend(0, matrix[0], N=5, recalculate_user=True)
    np.testing.assert_array_equal(ids, model.recommend(0, matrix[0], N=5)[0])
    unknown = model.recommend(12345, matrix[0], N=5, recalculate_user=True)
    np.testing.assert_array_equal(unknown[1], scores)
    many, _ = model.recommend([0, 1], matrix[:2], N=5, recalculate_user=True)
    np.testing.assert_array_equal(many[0], ids)


def test_implicit_data(matrix, machine):
    clicks = (matrix > 3).astype(np.float32)
    clicks.eliminate_zeros()
    with factorflow.ALS(factors=4, iterations=5, implicit=True, alpha=5, **machine).fit(clicks) as model:
        assert model.user_biases is None and model.global_mean == 0
        inside = model.predict(*clicks.nonzero()).mean()
        assert inside > 1.7 * (model.user_factors @ model.item_factors.T).mean()
        # Negative ratings are dislikes.
        users, items = clicks.nonzero()
        disliked = clicks.copy()
        disliked.data[users < 20] = -1
        found = model.fit(disliked).predict(users, items)
        assert found[users < 20].mean() < 0.3 < found[users >= 20].mean()
        disliked.data[:] = -1
        with pytest.raises(factorflow.DataError, match="no rating is above 0"):
            model.fit(disliked)
        ranking = model.fit(clicks).evaluate_ranking(clicks[:5], train=clicks[5:], k=5, resamples=0)
        assert 0 <= ranking["metrics"]["ndcg@5"] <= 1


def test_implicit_data_have_no_errors(matrix, model, machine, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.evaluate(matrix)
    with factorflow.ALS(factors=4, iterations=2, implicit=True, **machine).fit(matrix) as implicit:
        implicit.save(tmp_path / "model")
        with factorflow.load(tmp_path / "model", **machine) as loaded:
            for one in (implicit, loaded, pickle.loads(pickle.dumps(implicit))):
                with one, pytest.raises(factorflow.UsageError, match="no RMSE; .* evaluate_ranking"):
                    one.evaluate(matrix)


def test_sgd_and_early_stop(triples, matrix, machine):
    users, items, ratings = triples
    test = tuple(one[::10] for one in triples)
    train = tuple(np.delete(one, np.s_[::10]) for one in triples)
    calls = []
    with factorflow.SGD(factors=4, iterations=8, early_stop=1, **machine) as model:
        model.fit(train, validation=test, callback=lambda *one: calls.append(one))
        assert [one[0] for one in calls] == list(range(1, len(calls) + 1))
        assert "testRmse" in model.report_["iterations"][0]
        assert model.evaluate(test)["rmse"] < 1


@pytest.mark.parametrize("trainer", [factorflow.ALS, factorflow.SGD])
def test_files(trainer, triples, matrix, machine, tmp_path):
    with trainer(factors=3, iterations=3, random_state=5, **machine).fit(matrix) as model:
        model.save(tmp_path / "model")
        with pytest.raises(factorflow.UsageError, match="exist"):
            model.save(tmp_path / "model")
        model.save(tmp_path / "model", overwrite=True)
        with factorflow.load(tmp_path / "model", **machine) as loaded:
            assert type(loaded) is trainer and loaded.rank == 3
            assert loaded.get_params()["random_state"] == 5
            np.testing.assert_array_equal(loaded.user_factors, model.user_factors)
            np.testing.assert_array_equal(loaded.item_biases, model.item_biases)
            np.testing.assert_array_equal(loaded.recommend(3, matrix[3])[0], model.recommend(3)[0])
            np.testing.assert_array_equal(loaded.recommend(3)[0], model.recommend(3)[0])
        copy = pickle.loads(pickle.dumps(model))
        with copy:
            np.testing.assert_array_equal(copy.recommend(3)[0], model.recommend(3)[0])
    with pytest.raises(factorflow.DataError):
        factorflow.load(tmp_path / "absent", **machine)


def test_files_of_two_models_and_of_a_newer_version(model, matrix, machine, tmp_path, caplog):
    own, other = tmp_path / "own", tmp_path / "other"
    model.save(own)
    with factorflow.ALS(factors=4, iterations=4, random_state=9, **machine).fit(matrix) as second:
        second.save(other)
    metadata = own / "metadata" / "part-00000"
    whole = metadata.read_text()
    line = re.sub(r',"checksum":"\w+"', "", whole)
    metadata.write_text(line.replace('"format":1', '"format":999'))
    with pytest.raises(factorflow.DataError, match="newer version"):
        factorflow.load(own, **machine)
    metadata.write_text(whole)
    shutil.copy(other / "userFactors" / "part-00000.parquet", own / "userFactors")
    with pytest.raises(factorflow.DataError, match="another model"):
        factorflow.load(own, **machine)
    metadata.write_text(re.sub(r',"files":\{.*?\}', "", line))
    with caplog.at_level("INFO", "factorflow"), factorflow.load(own, **machine):
        assert "no digests" in caplog.text


def test_the_worker_is_a_cache(named, tmp_path):
    before = named.recommend("u03")
    report = named.evaluate(pa.table({"user": ["u03"], "item": ["i09"], "rating": [3.0]}))
    named.close()
    after = named.recommend("u03")
    np.testing.assert_array_equal(before[1], after[1])
    named.close()
    assert named.evaluate(pa.table({"user": ["u03"], "item": ["i09"], "rating": [3.0]})) == report
    named.close()
    named.save(tmp_path / "model")
    assert {one.name for one in (tmp_path / "model").iterdir()} >= {
        "itemCounts",
        "userMeans",
        "itemMeans",
        "metadata",
    }


def test_later_ratings(triples, matrix, machine):
    users, items, ratings = triples
    with factorflow.ALS(factors=3, iterations=3, **machine).fit(matrix) as model:
        items_before = model.item_factors
        model.partial_fit_users([7, 61], matrix[[3, 3]])
        assert model.user_factors.shape == (62, 3) and not model.user_factors[60].any()
        np.testing.assert_allclose(model.user_factors[7], model.user_factors[3], atol=0.05)
        np.testing.assert_array_equal(model.user_factors[7], model.user_factors[61])
        np.testing.assert_array_equal(model.item_factors, items_before)
        assert len(model.recommend(61, matrix[3], N=3)[0]) == 3
        later = sparse.csr_matrix(([5.0, 4.0], ([70, 70], [1, 2])), shape=(71, 40))
        model.partial_fit(later, iterations=1)
        assert model.user_factors.shape == (71, 3) and model.user_factors[70].any()
    table = pa.table({"user": [f"u{one}" for one in users], "item": items, "rating": ratings})
    with factorflow.ALS(factors=3, iterations=3, **machine).fit(table) as model:
        count = len(model.user_ids)
        model.partial_fit(pa.table({"user": ["new"], "item": [3], "rating": [4.0]}))
        assert "new" in model.user_ids and len(model.user_ids) == count + 1
        assert 3 not in model.recommend("new", N=40)[0]
        model.partial_fit_users(
            ["newer"], sparse.csr_matrix(([5.0], ([0], [2])), shape=(1, len(model.item_ids)))
        )
        assert len(model.recommend("newer", N=3, filter_already_liked_items=False)[0]) == 3


@pytest.mark.parametrize("form", ["matrix", "text"])
def test_what_users_have_rated_stays_with_the_model(form, triples, machine, tmp_path):
    def formed(rows):
        users, items, ratings = (one[rows] for one in triples)
        if form == "matrix":
            return sparse.csr_matrix((ratings, (users, items)), shape=(60, 40))
        names = ([f"{name}{one}" for one in ids] for name, ids in (("ü", users), ("i", items)))
        return pa.table(dict(zip(("user", "item", "rating"), (*names, ratings))))

    def ndcg(one, **options):
        return one.evaluate_ranking(test, resamples=0, **options)["metrics"]["ndcg@10"]

    drawn = np.random.default_rng(5).random(len(triples[0])) < 0.2
    train, test = formed(~drawn), formed(drawn)
    with factorflow.ALS(factors=3, iterations=3, **machine).fit(train) as model:
        expected = ndcg(model, train=train)
        everything = ndcg(model, train=False)
        assert ndcg(model) == expected != everything
        with pickle.loads(pickle.dumps(model)) as copy:
            assert ndcg(copy) == expected
        model.save(tmp_path / "model")
        with factorflow.load(tmp_path / "model", **machine) as loaded:
            assert ndcg(loaded) == expected
            loaded.save(tmp_path / "again")
        with factorflow.load(tmp_path / "again", **machine) as loaded:
            assert ndcg(loaded) == expected
            # One new user does not make it forget the others; nor does an update.
            new = 61 if form == "matrix" else "new"
            rated = sparse.csr_matrix(([5.0, 4.0], ([0, 0], [2, 4])), shape=(1, len(loaded.item_ids)))
            loaded.partial_fit_users(new, rated)
            assert ndcg(loaded) == expected
            assert set(loaded.item_ids[[2, 4]]).isdisjoint(loaded.recommend(new, N=40)[0])
            before = loaded.recommend(loaded.user_ids[3], N=40)[0]
            if form == "text":
                loaded.partial_fit((loaded.user_ids[3:4], before[:1], [2.0]))
            else:
                loaded.partial_fit(sparse.csr_matrix(([2.0], ([3], before[:1])), shape=(62, 40)))
            assert sorted([*loaded.recommend(loaded.user_ids[3], N=40)[0], before[0]]) == sorted(before)
            # Users who are solved anew have the ratings that they were solved from.
            loaded.partial_fit_users(loaded.user_ids[3], rated)
            ids = loaded.recommend(loaded.user_ids[3], N=40)[0]
            assert set(loaded.item_ids[[2, 4]]).isdisjoint(ids) and len(ids) == 37
        model.save(tmp_path / "without", histories=False)
        with factorflow.load(tmp_path / "without", **machine) as loaded:
            with pytest.raises(factorflow.UsageError, match="give train, or train=False"):
                ndcg(loaded)
            with pytest.raises(factorflow.UsageError, match="user_items"):
                loaded.recommend(loaded.user_ids[3])
            assert (ndcg(loaded, train=train), ndcg(loaded, train=False)) == (expected, everything)


def test_histories_keep_the_last_of_repeated_pairs(triples, machine, tmp_path):
    given = ([1, 1, 2, 1], [5, 6, 5, 5], [1.0, 2.0, 3.0, 4.0], [9, 1, 1, 3])
    with factorflow.ALS(factors=2, iterations=1, on_duplicates="last", **machine).fit(given) as model:
        model.save(tmp_path / "model")
    lists = parquet.read_table(tmp_path / "model" / "userHistories").to_pylist()
    assert lists == [
        {"id": 1, "items": [5, 6], "weights": [1, 2]},
        {"id": 2, "items": [5], "weights": [3]},
    ]


@pytest.mark.parametrize("implicit", [True, False])
def test_a_batch_is_applied_once(implicit, triples, machine):
    users, items, ratings = triples
    old, new = (tuple(one[rows] for one in triples) for rows in (np.s_[:700], np.s_[700:]))
    with factorflow.ALS(factors=3, iterations=3, implicit=implicit, **machine).fit(old) as model:
        model.partial_fit(new)
        once = model.user_factors
        with pytest.warns(factorflow.FactorFlowWarning, match="165 of 165 ratings are in"):
            model.partial_fit(new)
        np.testing.assert_array_equal(model.user_factors, once)
        if not implicit:
            with pytest.warns(factorflow.FactorFlowWarning, match="1 of 2 ratings are in"):
                model.partial_fit(tuple(np.append(one[:1], more) for one, more in zip(new, (1, 5, 3.0))))
            assert not np.array_equal(model.user_factors, once)
        model.partial_fit(new, again=True)
        assert not np.array_equal(model.user_factors, once)


def test_a_new_user_with_new_items_alone_gets_no_list(triples, machine):
    with factorflow.ALS(factors=3, iterations=2, implicit=True, **machine).fit(triples) as model:
        with pytest.warns(factorflow.FactorFlowWarning, match="1 new users, such as 99, .* no rec"):
            model.partial_fit(([99, 99], [500, 501], [1.0, 1.0]))
        assert len(model.recommend(99)[0]) == 0 and len(model.recommend(3)[0]) == 10
        assert model.recommend([99, 3])[0][0].tolist() == [None] * 10


def test_ids_of_users_that_are_added(triples, matrix, machine):
    with factorflow.ALS(factors=2, iterations=1, **machine).fit(matrix) as model:
        for user in (-3, 2**31 - 1, 2**32 + 3, 2**63):
            with pytest.raises(factorflow.DataError, match=f"user {user} cannot be added"):
                model.partial_fit_users(user, matrix[3])
        with pytest.raises(factorflow.UsageError, match="an id twice"):
            model.partial_fit_users([3, 3], matrix[[3, 3]])
        assert len(model.recommend(3)[0]) > 0 and len(model.user_ids) == 60
    users, items, ratings = triples
    for kind, added in ((np.int32, -3), (np.int32, 2**32 + 3), (np.int64, 2**40), (np.int64, -(2**63))):
        with factorflow.ALS(factors=2, iterations=1, **machine) as model:
            model.fit((users.astype(kind), items, ratings))
            one = sparse.csr_matrix(([5.0], ([0], [2])), shape=(1, len(model.item_ids)))
            model.partial_fit_users(added, one)
            assert added in model.user_ids.tolist() and 3 in model.user_ids
            lists = model.recommend([added, 3], N=3, filter_already_liked_items=False)[0]
            assert lists.shape == (2, 3)
            with pytest.raises(factorflow.DataError, match="cannot be added"):
                model.partial_fit_users(2**63, one)


def test_parameters_have_two_names(triples, machine):
    one = factorflow.ALS(rank=3, reg_param=0.1, max_iter=2, seed=4, **machine)
    other = factorflow.ALS(factors=3, regularization=0.1, iterations=2, random_state=4, **machine)
    with one, other:
        np.testing.assert_array_equal(one.fit(triples).user_factors, other.fit(triples).user_factors)
        drawn = factorflow.ALS(random_state=np.random.default_rng(0))._javascript()["seed"]
        assert isinstance(drawn, int)
    assert repr(other).startswith("<factorflow.ALS(factors=3, regularization=0.1")
