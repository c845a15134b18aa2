"""Small random sets and parameters, each with what was found for it."""

import csv
import json
import pathlib
import random
import subprocess

import numpy as np

COLUMNS = [("user", np.int64), ("item", np.int64), ("value", np.float64)]


class Set:
    """A set drawn by its seed: ratings to train on, test pairs, and parameters, as flags and as the formulas
    take them. Users and items are numbers here; `ids` gives their ids."""

    def __init__(self, seed, folder, program):
        self.draw, self.folder, self.program = random.Random(seed), pathlib.Path(folder), program
        self.name, self.counts, self.finds, self.worst = f"seed {seed}", {}, [], 0.0
        pick = self.draw.choice
        self.users, self.items = pick([3, 9, 40, 70]), pick([2, 8, 33, 60])
        self.implicit = self.draw.random() < 0.4
        self.ids = pick([lambda n: 3 * n - 20, lambda n: 2**40 * (n - 5), lambda n: f"x{n % 7}-{n}"])
        pairs = [(u, i) for u in range(self.users) for i in range(self.items)]
        self.draw.shuffle(pairs)
        size = max(2, int(len(pairs) * pick([0.05, 0.2, 0.5])))
        self.train = [(u, i, self.value()) for u, i in pairs[:size]]
        if not self.implicit and pick([True, False]):
            self.train += [(u, i, self.value()) for u, i, _ in self.draw.sample(self.train, size // 10)]
        self.liked_once()
        test = pairs[size : size + max(4, size // 3)] + [p[:2] for p in self.train[:2]]
        # A user and an item that are not trained on, and a pair twice.
        test += [(self.users + 1, test[0][1]), (test[0][0], self.items + 1), test[0]]
        self.test = [(u, i, self.value()) for u, i in test]
        self.params, self.flags = self.parameters(pick)

    def value(self):
        draw = self.draw
        if not self.implicit:
            return draw.randint(1, 10) / 2
        return (-1 if draw.random() < 0.1 else 1) * draw.choice([0, 1, 2, 3, 7, 40.5, 900])

    def liked_once(self):
        """At least one implicit rating is above 0."""
        u, i, value = self.train[0]
        self.train[0] = (u, i, abs(value) or 1)

    def parameters(self, pick):
        params = {"rank": pick([1, 3, 8, 13]), "maxIter": pick([2, 3, 5])}
        flags = {"rank": params["rank"], "max-iter": params["maxIter"], "seed": pick([0, 7])}
        given = {}
        nonnegative = self.draw.random() < 0.25
        if self.implicit:
            _, ids, _ = numbered(self, self.train)
            unobserved = pick([None, None, 0.05])
            weight = pick(["log", "raw", "binary", "spark"])
            auto = rounded(min(100, (len(ids[0]) * len(ids[1]) / len(self.train)) ** 0.6))
            alpha = 1 if unobserved is not None or weight == "spark" else auto
            if self.draw.random() < 0.4:
                alpha = given["alpha"] = pick([0.5, 8])
            reg = 0.003 if unobserved is not None else 0.1 if weight == "spark" else rounded(0.3 * alpha)
            params |= {"alpha": alpha, "weight": weight, "biases": False, "regParam": reg}
            params["regExponent"] = 1 if unobserved is not None or weight == "spark" else 0.75
            flags |= {"implicit": True} | ({} if weight == "log" else {"weight": weight})
            if unobserved is not None:
                params["unobservedWeight"] = flags["unobserved-weight"] = unobserved
        else:
            biases = pick([True, False])
            params |= {
                "biases": biases,
                "regParam": 0.02 if biases else 0.1,
                "regOffset": 10 if biases else 0,
            }
            params |= {"regExponent": 1, "biasDamping": [3, 5] if biases else [0, 0]}
            if not biases:
                flags["no-biases"] = True
            elif pick([True, False]):
                params["biasDamping"], flags["bias-damping"] = [1, 7], "1,7"
            if pick([True, False]):
                given["reg-offset"] = params["regOffset"] = pick([0, 2.5])
        if pick([True, False]):
            given["reg-param"] = params["regParam"] = pick([0.01, 0.3])
        if pick([True, False]):
            given["reg-exponent"] = params["regExponent"] = pick([0, 0.5])
        if nonnegative:
            flags["nonnegative"] = True
        params["nonnegative"] = params["rank"] if nonnegative else 0
        return params, flags | given

    def find(self, text):
        self.finds.append(f"{self.name}: {text}, with {json.dumps(self.flags)}")

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def near(self, what, got, expected, most):
        self.count("figures")
        if not abs(got - expected) <= most:
            self.find(f"{what} is {got}, and {expected} in float64")

    def run(self, *args, flags=None):
        """The answer of a command as an object."""
        words = [str(word) for word in args]
        for name, value in (flags or {}).items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        done = subprocess.run([*self.program, *words, "--json", "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(words)} ends with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def write(self, name, rows):
        path = self.folder / name
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [("user", "item", "rating"), *((self.ids(u), self.ids(i), value) for u, i, value in rows)]
            )
        return path


def rounded(value):
    """Three digits, as docs/implicit.md has the defaults."""
    return float(f"{value:.3g}")


def numbered(case, rows):
    """Rows by the places of ids in their order, and the ids."""
    ids = [sorted({case.ids(row[side]) for row in rows}) for side in (0, 1)]
    places = [{key: place for place, key in enumerate(side)} for side in ids]
    found = [(places[0][case.ids(u)], places[1][case.ids(i)], value) for u, i, value in rows]
    return np.array(found, dtype=COLUMNS), ids, places
