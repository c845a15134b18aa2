"""Seconds of `fit` in Python and of the command `train` for the same ratings, with 2 threads of the CPU.

    npm run test:python && build/python/environment/bin/python bench/python-fit.py RATINGS [RUNS [RANK]]

RATINGS: a folder of Parquet files with the columns user, item, rating. The runs alternate. Seconds of the
processor are those of all processes of a run.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as parquet
import scipy.sparse as sparse

import factorflow
from factorflow import _node


def main(folder, runs="3", rank="10"):
    table = parquet.read_table(folder, columns=["user", "item", "rating"])
    print(f"{table.num_rows:,} ratings, rank {rank}")
    ratings = {"pandas": table.to_pandas(), "csr": matrix_of(table)}
    for _ in range(int(runs)):
        report("train", lambda: train(folder, rank))
        for form, given in ratings.items():
            report(form, lambda: fit(given, rank))


def report(name, run):
    cpu = processor()
    seconds, loss = run()
    print(f"{name:7} {seconds:7.2f} s, processor {processor() - cpu:7.2f} s, loss {loss}", flush=True)


def train(folder, rank):
    with tempfile.TemporaryDirectory() as made:
        command = [*_node.command(), "train", folder, "--model-dir", str(Path(made, "model"))]
        command += ["--rank", rank, "--device", "cpu", "--workers", "2", "--json", "--quiet"]
        start = time.perf_counter()
        said = subprocess.run(command, check=True, capture_output=True).stdout
        return time.perf_counter() - start, json.loads(said)["iterations"][-1]["loss"]


def fit(ratings, rank):
    """The seconds of `fit`; the worker then ends, which counts as processor time alone."""
    with factorflow.ALS(factors=int(rank), device="cpu", num_threads=2) as model:
        start = time.perf_counter()
        model.fit(ratings)
        return time.perf_counter() - start, model.report_["iterations"][-1]["loss"]


def matrix_of(table):
    columns = [table[name].to_numpy() for name in ("user", "item", "rating")]
    return sparse.csr_matrix((columns[2], (columns[0], columns[1])))


def processor():
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


if __name__ == "__main__":
    main(*sys.argv[1:])
