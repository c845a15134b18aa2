"""Trains, predicts, evaluates and recommends by the command line on a small random set, and compares the
results with formulas.py in float64. Prints {"counts": {...}, "finds": [...], "worst": 1e-7}, where worst is
the largest distance of a row from its solution. Run by itself, with numpy installed:

    python3 scripts/torture/oracle/compare.py SEED FOLDER node dist/programs/cli/main.js
"""

import csv
import json
import sys

import numpy as np

sys.dont_write_bytecode = True
import formulas
from sets import Set, numbered

# The gradient of a solved row, in float32 roundings of its terms. Rows with fewer ratings than factors are solved by
# their dual system, whose roundings are multiplied by the norm of the other side's rows: 31 were seen at a small λ.
MOST_DISTANCE = 64 * formulas.EPSILON


def factors(folder, side, biases, mean):
    """A side as NumPy arrays in float64: its ids, its vectors as written, and factors and bias apart."""
    vectors = np.load(folder / f"{side}_factors.npy").astype(np.float64)
    ids = np.load(folder / f"{side}_ids.npy", allow_pickle=False).tolist()
    if not biases:
        return {"ids": ids, "vectors": vectors, "factors": vectors}
    bias = vectors[:, -2] - mean if side == "user" else vectors[:, -1]
    return {"ids": ids, "vectors": vectors, "factors": vectors[:, :-2], "bias": bias}


def train(case, iterations):
    """Trains and exports. Gives both sides, the last iteration's figures, and the model's folder."""
    model, out = case.folder / f"model-{iterations}", case.folder / f"factors-{iterations}"
    fixed = {"max-iter": iterations, "solver": "cholesky", "device": "cpu", "workers": 1, "model-dir": model}
    answer = case.run("train", case.write("train.csv", case.train), flags=case.flags | fixed)
    case.run("export", model, "--output", out)
    mean = np.mean([value for _, _, value in case.train]) if case.params["biases"] else 0
    return (
        [factors(out, side, case.params["biases"], mean) for side in ("user", "item")],
        answer["iterations"][-1],
        model,
    )


def check_model(case, problem, sides, before, last):
    """Users solve their equations for the items, and items theirs for the users one iteration before."""
    for side, other, own, fixed in (
        ("user", "item", sides[0], sides[1]),
        ("item", "user", sides[1], before[0]),
    ):
        for row, a, b, size in problem.rows(side, other, fixed):
            far = formulas.distance(a, b, problem.solution(own, row), size, case.params["nonnegative"])
            case.count("rows")
            case.worst = max(case.worst, far)
            if not far <= MOST_DISTANCE:
                case.find(f"{side} {own['ids'][row]} is {far:.2e} from the solution of its equations")
    loss = problem.objective(*sides)
    case.near("the loss", last["loss"], loss, 2e-6 * abs(loss) + 1e-6 * len(case.train))
    if not case.implicit:
        scale = np.abs(problem.ratings["value"]).max()
        rmse = np.sqrt((problem.errors(*sides) ** 2).mean())
        case.near("the RMSE of training", last["trainRmse"], rmse, 2e-6 * scale)


def check_predictions(case, model, scores, bounds, places, path):
    output = case.folder / "predictions.csv"
    case.run("predict", model, path, "--output", output)
    with output.open(newline="") as file:
        got = [float(row["prediction"]) for row in csv.DictReader(file)]
    if len(got) != len(case.test):
        return case.find(f"{len(got)} predictions of {len(case.test)} pairs")
    errors, cold = [], 0
    for (u, i, value), prediction in zip(case.test, got):
        user, item = places[0].get(case.ids(u)), places[1].get(case.ids(i))
        case.count("predictions")
        if user is None or item is None:
            cold += 1
            if not np.isnan(prediction):
                case.find(f"the prediction of a cold pair is {prediction}")
            continue
        errors.append(value - scores[user, item])
        if not abs(prediction - scores[user, item]) <= bounds[user, item]:
            case.find(
                f"the prediction of {case.ids(u)}, {case.ids(i)} is {prediction}, not {scores[user, item]}"
            )
    # Implicit data have no errors.
    if case.implicit:
        return None
    answer = case.run("evaluate", model, path)
    if (answer["pairs"], answer["coldPairs"]) != (len(case.test), cold):
        case.find(
            f"{answer['coldPairs']} of {answer['pairs']} pairs are cold, and {cold} of {len(case.test)} are"
        )
    most = bounds.max() + 1e-6 * np.abs(errors).max()
    case.near("rmse", answer["metrics"]["rmse"], np.sqrt(np.mean(np.square(errors))), most)
    case.near("mae", answer["metrics"]["mae"], np.mean(np.abs(errors)), most)


def positives_of(case, allowed, places):
    """The test items of each user, without those that are unknown or trained on."""
    positives = {}
    for u, i, _ in case.test:
        user, item = places[0].get(case.ids(u)), places[1].get(case.ids(i))
        if user is not None and item is not None and allowed[user, item]:
            positives.setdefault(user, set()).add(item)
    return positives


def check_ranking(case, model, scores, bounds, allowed, places, path):
    positives = positives_of(case, allowed, places)
    if not positives:
        return case.count("sets without a user to rank")
    ks, lists, unclear = (1, 5, 10), {}, 0
    values = {}
    for user, wanted in positives.items():
        unclear += formulas.unclear(scores[user], bounds[user], allowed[user])
        lists[user] = formulas.order(scores[user], allowed[user])
        for name, value in formulas.ranking(lists[user], scores[user], wanted, ks).items():
            values.setdefault(name, []).append(value)
    expected = {name: np.mean(each) for name, each in values.items()}
    users_of = np.array([(~allowed[:, item]).sum() for item in range(allowed.shape[1])])
    surprise = -np.log2((users_of + 1) / (len(allowed) + 1))
    for k in ks:
        # The probability of each item to be in a user's list: of equal scores at its end some are in it.
        chances = np.array([formulas.listed(lists[user], scores[user], k) for user in lists])
        expected[f"coverage@{k}"] = np.mean(1 - np.prod(1 - chances, axis=0))
        expected[f"novelty@{k}"] = (chances @ surprise).sum() / chances.sum()
    answer = case.run(
        "evaluate", model, path, "--ranking", "--k", "1,5,10", "--exclude", case.folder / "train.csv"
    )
    if answer["users"] != len(positives):
        case.find(f"{answer['users']} users are ranked, not {len(positives)}")
    if set(answer["metrics"]) != set(expected):
        case.find(f"the metrics are {sorted(answer['metrics'])}, not {sorted(expected)}")
    case.count("users with scores too close to order", unclear)
    for name in set(expected) & set(answer["metrics"]):
        if unclear == 0 or name.split("@")[0] not in ("coverage", "novelty"):
            case.near(name, answer["metrics"][name], expected[name], 1e-9 + unclear / len(positives))


def check_lists(case, model, scores, bounds, allowed, ids, places):
    output, n = case.folder / "lists.csv", case.draw.choice([1, 4, 100])
    case.run("recommend", model, "--n", n, "--exclude", case.folder / "train.csv", "--output", output)
    lists = {user: [] for user in range(len(ids[0]))}
    number = type(ids[0][0])
    with output.open(newline="") as file:
        for row in csv.DictReader(file):
            listed = lists[places[0][number(row["user"])]]
            listed.append((places[1][number(row["item"])], float(row["prediction"])))
            if int(row["rank"]) != len(listed):
                case.find(f"rank {row['rank']} of user {row['user']} is at place {len(listed)}")
    for user, listed in lists.items():
        right = formulas.order(scores[user], allowed[user])[:n]
        case.count("lists")
        items = [item for item, _ in listed]
        if len(items) != len(right) or len(set(items)) != len(items) or not allowed[user, items].all():
            case.find(f"the list of user {ids[0][user]} has items {items}, not {right}")
            continue
        for (item, prediction), best in zip(listed, right):
            near = bounds[user, item] + bounds[user, best]
            same_score = item != best and scores[user, item] == scores[user, best]
            if same_score or abs(scores[user, item] - scores[user, best]) > near:
                case.find(f"the list of user {ids[0][user]} has item {ids[1][item]}, not {ids[1][best]}")
            if not abs(prediction - scores[user, item]) <= bounds[user, item]:
                case.find(f"a list has {prediction} for {scores[user, item]}")


def compare(seed, folder, program):
    case = Set(seed, folder, program)
    ratings, ids, places = numbered(case, case.train)
    problem = (formulas.Implicit if case.implicit else formulas.Explicit)(ratings, case.params)
    sides, last, model = train(case, case.params["maxIter"])
    before, _, _ = train(case, case.params["maxIter"] - 1)
    for side, known in zip(sides, ids):
        if side["ids"] != known:
            case.find(f"the ids are {side['ids']}, not {known}")
    check_model(case, problem, sides, before, last)
    scores, bounds = formulas.predictions(sides[0]["vectors"], sides[1]["vectors"])
    path = case.write("test.csv", case.test)
    allowed = np.ones(scores.shape, bool)
    allowed[ratings["user"], ratings["item"]] = False
    check_predictions(case, model, scores, bounds, places, path)
    check_ranking(case, model, scores, bounds, allowed, places, path)
    check_lists(case, model, scores, bounds, allowed, ids, places)
    case.count("models of implicit data" if case.implicit else "models of explicit data")
    return {"counts": case.counts, "finds": case.finds, "worst": case.worst}


if __name__ == "__main__":
    print(json.dumps(compare(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))
