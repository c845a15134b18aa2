"""Searches of bench/serving/lists.ts by faiss: a line `KIND PROBES` in, a line of JSON out.

    faiss-lists.py ARRAYS LISTS QUERIES N

ARRAYS: a folder of `factorflow export`. Users are evenly spaced, and searched one at a time in one thread.
"""

import json
import sys
import time

import faiss
import numpy


def main(folder, lists, queries, n):
    faiss.omp_set_num_threads(1)
    items = numpy.load(f"{folder}/item_factors.npy")
    ids = numpy.load(f"{folder}/item_ids.npy")
    users = numpy.load(f"{folder}/user_factors.npy")
    chosen = users[[index * len(users) // queries for index in range(queries)]]
    width = items.shape[1]
    inner = faiss.METRIC_INNER_PRODUCT
    kinds = {
        "flat": lambda q: faiss.IndexIVFFlat(q, width, lists, inner),
        "sq8": lambda q: faiss.IndexIVFScalarQuantizer(
            q, width, lists, faiss.ScalarQuantizer.QT_8bit, inner
        ),
    }
    indexes, seconds = {}, {}
    for kind, make in kinds.items():
        start = time.perf_counter()
        quantizer = faiss.IndexFlatIP(width)
        index = make(quantizer)
        index.cp.niter = 8
        index.cp.max_points_per_centroid = 64
        index.train(items)
        index.add(items)
        indexes[kind] = index
        seconds[kind] = round(time.perf_counter() - start, 1)
    say({"version": faiss.__version__, "lists": lists, "seconds": seconds})
    for line in sys.stdin:
        kind, probes = line.split()
        index = indexes[kind]
        index.nprobe = int(probes)
        found = []
        start = time.perf_counter()
        for query in chosen:
            found.append(index.search(query[None, :], n)[1][0])
        milliseconds = 1000 * (time.perf_counter() - start) / queries
        say({"milliseconds": milliseconds, "items": [ids[row[row >= 0]].tolist() for row in found]})


def say(answer):
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    folder, *numbers = sys.argv[1:]
    main(folder, *(int(number) for number in numbers))
