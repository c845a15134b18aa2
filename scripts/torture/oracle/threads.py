"""Threads on one model of the Python package, which another thread trains again and again.

    python3 scripts/torture/oracle/threads.py SEED

Each answer must be that of one of the models, bit for bit. Prints {"counts", "finds"} as JSON.
"""

import json
import sys
import threading

import numpy as np

import factorflow

FITS = 12
THREADS = 4


def set_of(draw, items):
    count = 1500
    return (draw.integers(0, 40, count), draw.integers(0, items, count) * 2**40, draw.uniform(1, 5, count))


def trainer():
    return factorflow.ALS(factors=4, iterations=2, on_duplicates="mean", device="cpu", num_threads=1)


CALLS = {
    "one user": lambda model: model.recommend(3, N=40),
    "users": lambda model: model.recommend([5, 3, 9], N=40),
    "filtered": lambda model: model.recommend(7, N=5, filter_items=[0, 2**40]),
    "predict": lambda model: model.predict([1, 2, 3], [0, 2**40, 30 * 2**40]),
    "similar": lambda model: model.similar_items([0, 2**40], N=40),
    "factors": lambda model: model.item_factors,
}


def bits_of(answer):
    arrays = answer if isinstance(answer, tuple) else (answer,)
    return tuple((one.shape, one.tobytes()) for one in arrays)


def main(seed):
    draw = np.random.default_rng(seed)
    # With an item more in each set, positions of one model name other items of the next one.
    sets = [set_of(draw, items) for items in (31, 32, 33)]
    expected = {name: set() for name in CALLS}
    for ratings in sets:
        with trainer().fit(ratings) as model:
            for name, call in CALLS.items():
                expected[name].add(bits_of(call(model)))
    counts, finds, ended = {}, [], threading.Event()

    def ask(order):
        name = list(CALLS)[order % len(CALLS)]
        try:
            found = bits_of(CALLS[name](model)) in expected[name]
        except Exception as error:
            finds.append(f"seed {seed}: {name} in a thread raises {error!r}")
        else:
            counts[name] = counts.get(name, 0) + 1
            if not found:
                finds.append(f"seed {seed}: {name} in a thread is the answer of no model")

    def ask_often(first):
        order = first
        while not ended.is_set():
            ask(order)
            order += 1

    with trainer().fit(sets[0]) as model:
        threads = [threading.Thread(target=ask_often, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, FITS + 1):
                model.fit(sets[number % 3], callback=lambda iteration, *_: ask(iteration))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    print(json.dumps({"counts": counts, "finds": finds[:20]}))


main(int(sys.argv[1]))
