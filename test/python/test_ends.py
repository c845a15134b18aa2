"""Bad input, and ends of processes."""

import decimal
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sparse

import factorflow
from factorflow import _node


def refused(error, message):
    return pytest.raises(error, match=message)


@pytest.mark.parametrize(
    "ratings, error, message",
    [
        (sparse.csr_matrix((3, 3)), factorflow.DataError, "no ratings"),
        (
            pd.DataFrame({"user": [], "item": [], "rating": []}).astype("int64"),
            factorflow.DataError,
            "no ratings",
        ),
        (sparse.csr_matrix([[1.0, np.nan]]), factorflow.DataError, "user 0 and item 1 is nan"),
        (sparse.csc_matrix([[1.0], [np.inf]]), factorflow.DataError, "user 1 and item 0 is inf"),
        (([1, 2], [3, 4], [1.0, np.nan]), factorflow.DataError, "row 1 .* user 2, item 4, rating nan"),
        (
            pa.table({"user": [1, None], "item": [1, 2], "rating": [1, 2]}),
            factorflow.DataError,
            "row 1 .*None",
        ),
        (
            pa.table({"user": ["a", "b"], "item": [1, 2], "rating": ["x", "y"]}),
            factorflow.DataError,
            "numbers",
        ),
        (
            pd.DataFrame({"user": [1.5], "item": [1], "rating": [1]}),
            factorflow.DataError,
            "whole numbers or text",
        ),
        (
            pd.DataFrame({"user": [1], "film": [2], "stars": [3]}),
            factorflow.DataError,
            "no column 'item' .* the columns are 'user', 'film', 'stars'",
        ),
        (
            pd.DataFrame({"user": [1, "a"], "item": [1, 2], "rating": [1, 2]}),
            factorflow.DataError,
            "column 'user' .* cannot be used",
        ),
        (([1, "a"], [1, 2], [1, 2]), factorflow.DataError, "column 'user' .* cannot be used"),
        (([1, True], [1, 2], [1, 2]), factorflow.DataError, "column 'user' .* cannot be used"),
        (([1], [2], [1j]), factorflow.DataError, "column 'rating' of complex128"),
        (([[1], [2, 3]], [1, 2], [1, 2]), factorflow.DataError, "the values are no array"),
        (([1], [2], np.ma.array([3.0], mask=[True])), factorflow.DataError, "row 0 .* rating None"),
        ((np.ma.array([1], mask=[True]), [2], [3.0]), factorflow.DataError, "row 0 .* user None"),
        (([1], [2], [3.0], [4]), factorflow.UsageError, "on_duplicates='last'"),
        (([1, 2], [3], [1.0, 2.0]), factorflow.DataError, "one length"),
        (np.zeros((3, 3)), TypeError, "shape .3, 3."),
        ("ratings.csv", TypeError, "str"),
        (sparse.csr_matrix([[1j]]), factorflow.DataError, "numbers"),
    ],
)
def test_ratings_that_cannot_be_used(ratings, error, message, machine):
    with factorflow.ALS(factors=2, **machine) as model:
        with refused(error, message):
            model.fit(ratings)
        with refused(factorflow.NotFittedError, "not fitted"):
            model.recommend(0)


def test_rows_may_be_skipped(machine):
    ratings = ([1, 2, 1, 2], [3, 4, 4, 3], [1.0, np.nan, 2.0, 3.0])
    with factorflow.ALS(factors=2, on_bad_rows="skip", **machine).fit(ratings) as model:
        assert model.report_["badRows"] == 1


def test_parameters_that_cannot_be_used(matrix, machine):
    with refused(TypeError, "no parameter factor. Did you mean factors"):
        factorflow.ALS(factor=3)
    with refused(TypeError, "factors and rank of ALS mean the same"):
        factorflow.ALS(factors=3, rank=4)
    with refused(TypeError, "no parameter alpha"):
        factorflow.SGD(alpha=3)
    for given, message in (
        ({"alpha": 3}, "alpha"),
        ({"iterations": 0}, "max_iter|iterations"),
        ({"regularization": -1}, "regularization|reg_param"),
        ({"solver": "lu"}, "solver"),
    ):
        with factorflow.ALS(**given, **machine) as model, refused(factorflow.UsageError, message):
            model.fit(matrix)
    with factorflow.ALS(factors=4, device="cpu", memory_budget="1MiB") as model:
        with refused((factorflow.CapacityError, factorflow.UsageError), "memory"):
            model.fit(matrix)
    with refused(factorflow.NotFittedError, "not fitted"):
        _ = factorflow.ALS().user_factors


def test_ids_and_shapes_that_do_not_exist(model, named, matrix):
    for user in (60, -1):
        with refused(IndexError, f"user {user} is out of range: the model has 60 users"):
            model.recommend(user)
    with refused(KeyError, "no user 'ann'"):
        named.recommend(["u01", "ann"])
    with refused(KeyError, "no item 'x'"):
        named.similar_items("x")
    with refused(IndexError, "item 40"):
        model.similar_items(40)
    with refused(IndexError, "item 41"):
        model.recommend(3, items=[1, 41])
    with refused(ValueError, r"shape \(60, 40\), need \(1, 40\)"):
        model.recommend(3, matrix)
    with refused(ValueError, "recalculate_user needs user_items"):
        model.recommend(3, recalculate_user=True)
    for count in (0, 2.5, True):
        with refused(ValueError, "N must be"):
            model.recommend(3, N=count)
    with refused(ValueError, "a matrix has numbers of rows"):
        named.evaluate(matrix)
    with refused(ValueError, "pairs"):
        model.predict([1, 2], [1, 2, 3])
    # None of these has ended the worker.
    assert model._slot.worker.alive


BAD_IDS = [3.7, np.nan, True, None, "abc", np.datetime64(3, "s"), decimal.Decimal(3), b"3", 3j, np.ma.masked]


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
def test_values_that_are_no_ids(bad, model, named, matrix):
    doors = [
        lambda model, ids: model.recommend(ids),
        lambda model, ids: model.recommend(1, filter_items=ids),
        lambda model, ids: model.recommend(1, items=ids),
        lambda model, ids: model.similar_items(ids),
        lambda model, ids: model.similar_users(ids),
        lambda model, ids: model.predict(ids, [1] * np.size(ids)),
        lambda model, ids: model.predict([1] * np.size(ids), ids),
        lambda model, ids: model.rank_items(1, matrix[1], ids),
        lambda model, ids: model.partial_fit_users(ids, matrix[: np.size(ids)]),
    ]
    mixed = np.ma.array([1, 2], mask=[False, True]) if bad is np.ma.masked else [1, bad]
    for door in doors:
        for ids in (bad, mixed, np.asarray(bad) if bad is not np.ma.masked else mixed):
            if ids is None and door in doors[1:3]:
                continue  # No list of items.
            with refused(factorflow.UsageError, "ids of the model's .* are whole numbers|masked|shape"):
                door(model, ids)
    if not isinstance(bad, str):
        with refused(factorflow.UsageError, "are text|masked|shape"):
            named.recommend(bad)
    with refused(factorflow.UsageError, "user 3 is of type int, .* are text"):
        named.recommend(3)


def test_whole_numbers_in_other_forms(model):
    expected = model.recommend(3)[0].tolist()
    forms = [3.0, np.float32(3), np.uint64(3), np.int8(3), np.array(3, ">i4"), np.array(3, object)]
    for form in forms:
        assert model.recommend(form)[0].tolist() == expected
    for form in ([3], (3,), pd.Series([3]), pd.array([3], "Int64"), pa.array([3]), pd.Categorical([3])):
        assert model.recommend(form)[0][0].tolist() == expected
    for user in (2**32 + 3, 2**31, 2**63, -(2**70)):
        with refused(IndexError, f"user {user} is out of range"):
            model.recommend(user)
    assert np.isnan(model.predict([3, 2**32 + 3, 2**64], 9)).tolist() == [False, True, True]


def test_node_that_is_missing_or_old(monkeypatch, tmp_path):
    monkeypatch.delenv("FACTORFLOW_NODE", raising=False)
    monkeypatch.setattr(_node, "_of_wheel", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(factorflow.NodeError, r"there is none. Install it with: pip install 'factorflow\[node\]'"):
        factorflow.ALS().fit(sparse.csr_matrix([[1.0]]))
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v20.11.1\n")
    old.chmod(0o755)
    with refused(factorflow.NodeError, "20.11.1"):
        _node.node()
    monkeypatch.setenv("FACTORFLOW_MAIN", str(tmp_path / "absent.js"))
    with refused(factorflow.NodeError, "no file"):
        _node.program()


def test_a_gpu_without_webgpu(monkeypatch, tmp_path):
    """The files of the wheel for any system: those of this wheel, as links, without WebGPU."""
    files = Path(factorflow.__file__).parent / "js"
    without = shutil.ignore_patterns("webgpu")
    shutil.copytree(files, tmp_path / "js", copy_function=os.link, ignore=without)
    program = "node_modules/factorflow/dist/programs/cli/main.js"
    monkeypatch.setenv("FACTORFLOW_MAIN", str(tmp_path / "js" / program))
    with factorflow.ALS(device="gpu") as model:
        with refused(factorflow.UsageError, "webgpu, .* is missing .* pip install .* device cpu") as error:
            model.fit(sparse.csr_matrix([[1.0]]))
    assert "npm" not in str(error.value)


@pytest.fixture
def lists_of_worker(monkeypatch):
    """The worker makes all lists, also short ones."""
    monkeypatch.setattr("factorflow._recommend._is_for_worker", lambda work, device: True)


def test_a_worker_that_dies(triples, machine, lists_of_worker):
    with factorflow.ALS(factors=2, **machine).fit(triples) as model:
        before = model.recommend(3)
        os.kill(model._slot.worker.pid, signal.SIGKILL)
        np.testing.assert_array_equal(model.recommend(3)[0], before[0])
        first = model._slot.worker.pid

        def kill(*_):
            os.kill(first, signal.SIGKILL)

        with refused(factorflow.WorkerError, "ended unexpectedly"):
            model.fit(triples, callback=kill)
        np.testing.assert_array_equal(model.recommend(3)[0], before[0])


def test_an_interrupt_ends_the_training(triples, machine):
    with factorflow.ALS(factors=2, iterations=1_000_000, **machine) as model:

        def interrupt(iteration, *_):
            if iteration == 3:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            model.fit(triples, callback=interrupt)
        assert model._slot.worker is not None and not model._slot.worker.alive


def test_threads_take_turns(model, lists_of_worker):
    expected = [model.recommend(user)[0].tolist() for user in range(6)]
    found = [None] * 6

    def ask(user):
        for _ in range(5):
            found[user] = model.recommend(user)[0].tolist()

    threads = [threading.Thread(target=ask, args=(user,)) for user in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == expected


def test_an_answer_is_of_one_model(triples, machine, lists_of_worker):
    """Another thread's fit, with an item more, ends in the midst of a call."""
    users, items, ratings = triples
    other = factorflow.ALS(factors=3, iterations=1, **machine)
    with factorflow.ALS(factors=3, iterations=1, **machine).fit(triples) as model, other:
        other.fit((np.append(users, 1), np.append(items, -4), np.append(ratings, 5)))
        states = (model._state, other._state)
        calls = {
            "recommend": lambda: model.recommend([1, 2, 3], N=30),
            "one user": lambda: model.recommend(2, N=30),
            "predict": lambda: model.predict(users, items),
            "similar": lambda: model.similar_items([1, 2], N=30),
            "evaluate": lambda: model.evaluate(triples)["rmse"],
            "ranking": lambda: list(model.evaluate_ranking(triples, resamples=0)["metrics"].values()),
        }
        hold = model._slot.hold

        def replaced(flags, state):
            model._state = states[1]
            return hold(flags, state)

        for name, call in calls.items():
            expected = call()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(model._slot, "hold", replaced)
                np.testing.assert_array_equal(call(), expected, err_msg=name)
            model._state = states[0]


def test_a_call_between_a_training_and_its_model(triples, machine, lists_of_worker):
    class Asking(factorflow.ALS):
        """Asks before `fit` has replaced the state."""

        answers = []

        def __setattr__(self, name, value):
            if name == "_state" and value is not None and self._state is not None:
                self.answers.append(self.recommend(3)[1].tolist())
            super().__setattr__(name, value)

    users, items, ratings = triples
    with Asking(factors=2, iterations=1, **machine).fit(triples) as model:
        before = model.recommend(3)[1].tolist()
        model.fit((users, items, 6 - ratings))
        after = model.recommend(3)[1].tolist()
        model.close()
        assert model.recommend(3)[1].tolist() == after != before == model.answers[0]
        model.partial_fit(([3], [5], [1.0]))
        after = model.recommend(3)[1].tolist()
        model.close()
        assert model.recommend(3)[1].tolist() == after


def test_a_callback_of_fit_uses_the_model_of_before(triples, machine):
    model = factorflow.ALS(factors=2, iterations=2, **machine)
    said = []

    def not_fitted(*_):
        with refused(factorflow.NotFittedError, "not fitted"):
            model.recommend(3)
        said.append("not fitted")

    def ask(*_):
        np.testing.assert_array_equal(model.recommend(3)[1], before)
        assert model.evaluate(triples)["pairs"] == len(triples[0])
        for update in (model.fit, model.partial_fit):
            with refused(factorflow.UsageError, "is being trained"):
                update(triples)
        # Also another thread, for which the callback waits.
        thread = threading.Thread(target=lambda: said.append(list(model.recommend(3)[1])))
        thread.start()
        thread.join()

    with model:
        model.fit(triples, callback=not_fitted)
        before = model.recommend(3)[1]
        model._params["max_iter"] = model._params.pop("iterations") + 1
        model.fit(triples, callback=ask)
        assert said == ["not fitted"] * 2 + [list(before)] * 3
        assert list(model.recommend(3)[1]) != list(before)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_fork_has_a_worker_of_its_own(model, lists_of_worker):
    expected = model.recommend(3)[0].tolist()
    parent = model._slot.worker.pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            same = model.recommend(3)[0].tolist() == expected
            code = 0 if same and model._slot.worker.pid != parent else 2
            model.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert model.recommend(3)[0].tolist() == expected
    assert model._slot.worker.pid == parent


def test_many_models_leave_few_processes(triples, machine, monkeypatch):
    monkeypatch.setattr("factorflow._workers._MOST", 2)
    models = [
        factorflow.ALS(factors=2, iterations=1, random_state=seed, **machine).fit(triples)
        for seed in range(3)
    ]
    assert [one._slot.worker is not None for one in models] == [False, True, True]
    assert len({tuple(one.recommend(3)[1]) for one in models[::-1]}) == 3
    pids = [one._slot.worker.pid for one in models if one._slot.worker is not None]
    models.clear()
    wait_for_end(pids)


PROGRAM = """
import sys, numpy, factorflow
draw = numpy.random.default_rng(0)
ratings = (draw.integers(0, 50, 2000), draw.integers(0, 40, 2000), draw.uniform(1, 5, 2000))
model = factorflow.ALS(factors=4, iterations=int(sys.argv[1]), device="cpu", num_threads=1)
def told(iteration, *_):
    if iteration == 1:
        print(model._slot.lent.worker.pid, flush=True)
model.fit(ratings, callback=told)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_a_parent_that_ends_leaves_no_process(end):
    iterations = "1" if end is None else "1000000"
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, iterations], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with parent:
        worker = int(parent.stdout.readline())
        assert alive(worker)
        if end is not None:
            parent.send_signal(end)
        parent.communicate(timeout=30)
    assert (parent.returncode == 0) == (end is None)
    wait_for_end([worker])


LATE = """
import threading, numpy, factorflow
def work():
    threading.main_thread().join()
    draw = numpy.random.default_rng(0)
    ratings = (draw.integers(0, 50, 2000), draw.integers(0, 40, 2000), draw.uniform(1, 5, 2000))
    with factorflow.ALS(factors=4, iterations=1, device="cpu", num_threads=1).fit(ratings) as model:
        print(len(model.recommend(3)[0]), flush=True)
threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_thread():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=50)
    assert (done.stdout, done.stderr) == ("10\n", "")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pids, seconds=20):
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end, "a worker did not end"
        time.sleep(0.05)


def test_another_version_is_refused(monkeypatch, machine):
    monkeypatch.setattr("factorflow._worker.__version__", "0.0.9")
    with refused(factorflow.WorkerError, "not factorflow 0.0.9"):
        factorflow.ALS(**machine).fit(sparse.csr_matrix([[1.0]]))


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node on PATH")
def test_node_of_path(monkeypatch):
    monkeypatch.delenv("FACTORFLOW_NODE", raising=False)
    monkeypatch.setattr(_node, "_of_wheel", lambda: None)
    assert Path(_node.node()).name == "node"
