"""Searches of bench/cases/lists.ts by faiss: a line `KIND PROBES` in, a line of JSON out.

    faiss-lists.py ARRAYS recommend|similar RANK LISTS QUERIES N

ARRAYS: a folder of `factorflow export`. Queries (users, or items) are evenly spaced, and searched one at a time
in one thread.
"""

import json
import sys
import time

import faiss
import numpy


def main(folder, search, rank, lists, queries, n):
    faiss.omp_set_num_threads(1)
    items = numpy.load(f"{folder}/item_factors.npy", mmap_mode="r")
    ids = numpy.load(f"{folder}/item_ids.npy")
    users = numpy.load(f"{folder}/user_factors.npy", mmap_mode="r")
    # A feature that is the same for all items, of biases, changes no order, but it would change the lists.
    varying = numpy.flatnonzero(items.min(axis=0) != items.max(axis=0))
    if search == "similar":
        # The features after RANK are biases, which similarities ignore.
        varying = varying[varying < rank]
    items = items[:, varying]
    if search == "similar":
        items /= numpy.maximum(numpy.linalg.norm(items, axis=1, keepdims=True), 1e-30)
    asked_of = items if search == "similar" else users[:, varying]
    places = [index * len(asked_of) // queries for index in range(queries)]
    chosen = asked_of[places]
    del users, asked_of
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
        start = time.process_time()
        quantizer = faiss.IndexFlatIP(width)
        index = make(quantizer)
        index.cp.niter = 8
        index.cp.max_points_per_centroid = 64
        index.train(items)
        index.add(items)
        indexes[kind] = index
        seconds[kind] = round(time.process_time() - start, 1)
    del items
    say({"version": faiss.__version__, "lists": lists, "seconds": seconds})
    # The item itself is not one of those most similar to it.
    similar = search == "similar"
    asked = n + 1 if similar else n
    for line in sys.stdin:
        kind, probes = line.split()
        index = indexes[kind]
        index.nprobe = int(probes)
        found = []
        start, before = time.perf_counter(), time.process_time()
        for query in chosen:
            found.append(index.search(query[None, :], asked)[1][0])
        busy = 1000 * (time.process_time() - before) / queries
        milliseconds = 1000 * (time.perf_counter() - start) / queries
        if similar:
            found = [row[row != place][:n] for row, place in zip(found, places)]
        lists_found = [ids[row[row >= 0]].tolist() for row in found]
        say({"busy": busy, "milliseconds": milliseconds, "items": lists_found})


def say(answer):
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    folder, search, *numbers = sys.argv[1:]
    main(folder, search, *(int(number) for number in numbers))
