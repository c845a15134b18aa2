"""ALS, its metrics and its lists in float64, written from docs/concepts.md, docs/implicit.md and
docs/ranking.md and from the papers that these name. Slow on purpose: a formula is a line.

X is m x f and Theta n x f. A rating is a row of (user, item, value) by number.
"""

from math import comb

import numpy as np

EPSILON = float(np.finfo(np.float32).eps)


def effective(ratings):
    """True for implicit ratings that act: not 0, and of a user and an item with a rating above 0."""
    liked = ratings[ratings["value"] > 0]
    known = np.isin(ratings["user"], liked["user"]) & np.isin(ratings["item"], liked["item"])
    return known & (ratings["value"] != 0)


def weights(form, ratings):
    """Weights of implicit ratings, of mean 1 except Spark's; docs/implicit.md, The weight of a rating."""
    acts = effective(ratings)
    size = np.abs(ratings["value"][acts])
    if form == "binary":
        weight = np.ones_like(size)
    elif form in ("raw", "spark"):
        weight = size
    else:
        weight = 1 + np.log(1 + size / np.exp(np.log(size).mean()))
    all_weights = np.zeros(len(ratings))
    all_weights[acts] = weight if form == "spark" else weight / weight.mean()
    return all_weights


class Explicit:
    """r is near mu + beta_u + gamma_v + x_u theta_v; a row of n ratings has the shift lambda n^nu + o sigma,
    its bias lambda n + d."""

    def __init__(self, ratings, params):
        self.ratings, self.params = ratings, params
        self.mean = ratings["value"].mean() if params["biases"] else 0.0
        self.offset = params["regOffset"] * ratings["value"].std()

    def rows(self, side, other, fixed):
        """For each row of a side with ratings: its number, A, b, and the size of the sums that make b."""
        place = 0 if side == "user" else 1
        for row in np.unique(self.ratings[side]):
            mine = self.ratings[self.ratings[side] == row]
            vectors, target, shifts = fixed["factors"][mine[other]], mine["value"], self.shift(len(mine))
            if self.params["biases"]:
                target = target - self.mean - fixed["bias"][mine[other]]
                vectors = np.column_stack([vectors, np.ones(len(mine))])
                shifts = np.append(shifts, self.bias_shift(len(mine), place))
            size = (np.abs(mine["value"]) + abs(self.mean)) @ np.linalg.norm(vectors, axis=1)
            yield row, vectors.T @ vectors + np.diag(shifts), vectors.T @ target, size

    def shift(self, n):
        return np.full(
            self.params["rank"], self.params["regParam"] * n ** self.params["regExponent"] + self.offset
        )

    def bias_shift(self, n, place):
        return self.params["regParam"] * n + self.params["biasDamping"][place]

    def solution(self, side, row):
        """Factors and bias of a row as one vector."""
        return (
            np.append(side["factors"][row], side["bias"][row])
            if self.params["biases"]
            else side["factors"][row]
        )

    def errors(self, users, items):
        value = (users["factors"][self.ratings["user"]] * items["factors"][self.ratings["item"]]).sum(1)
        if self.params["biases"]:
            value += self.mean + users["bias"][self.ratings["user"]] + items["bias"][self.ratings["item"]]
        return self.ratings["value"] - value

    def objective(self, users, items):
        """Sum of squared errors and the penalty of every row."""
        total = (self.errors(users, items) ** 2).sum()
        for place, (side, name) in enumerate([(users, "user"), (items, "item")]):
            for row, n in zip(*np.unique(self.ratings[name], return_counts=True)):
                total += self.shift(n)[0] * (side["factors"][row] ** 2).sum()
                if self.params["biases"]:
                    total += self.bias_shift(n, place) * side["bias"][row] ** 2
        return total


class Implicit:
    """The two forms of docs/implicit.md, Equations: Spark's, and iALS's with a weight of unrated pairs."""

    def __init__(self, ratings, params):
        self.ratings, self.params = ratings, params
        self.weight = weights(params["weight"], ratings)
        self.unobserved = params.get("unobservedWeight")

    def rows(self, side, other, fixed):
        theta, alpha, w = fixed["factors"], self.params["alpha"], self.unobserved
        gram = theta.T @ theta
        for row in np.unique(self.ratings[side]):
            mine = self.ratings[side] == row
            vectors, size = theta[self.ratings[other][mine]], alpha * self.weight[mine]
            liked = self.ratings["value"][mine] > 0
            a = (1 if w is None else w) * gram + (vectors.T * size) @ vectors
            a += self.shift(liked.sum(), len(theta)) * np.eye(len(a))
            confidence = (size + (1 if w is None else 0)) * liked
            # Factors of 0 are asked for without a rating above 0, and are the solution for b = 0.
            yield row, a, vectors.T @ confidence, confidence @ np.linalg.norm(vectors, axis=1)

    def shift(self, liked, others):
        count = liked if self.unobserved is None else liked + self.unobserved * others
        return self.params["regParam"] * count ** self.params["regExponent"]

    def solution(self, side, row):
        return side["factors"][row]

    def objective(self, users, items):
        """Over all pairs, those without a rating too."""
        score = users["factors"] @ items["factors"].T
        total = (1 if self.unobserved is None else self.unobserved) * (score**2).sum()
        rated = score[self.ratings["user"], self.ratings["item"]]
        liked = self.ratings["value"] > 0
        size = self.params["alpha"] * self.weight
        total += (size * (liked - rated) ** 2).sum()
        if self.unobserved is None:
            total += ((liked - rated) ** 2 - rated**2).sum()
        for side, name, others in (
            (users, "user", len(items["factors"])),
            (items, "item", len(users["factors"])),
        ):
            for row in range(len(side["factors"])):
                n = (liked & (self.ratings[name] == row)).sum()
                total += self.shift(n, others) * (side["factors"][row] ** 2).sum()
        return total


def distance(a, b, x, size, nonnegative):
    """Distance of x from the minimum of x A x - 2 b x: the gradient over the size of its terms. The first
    `nonnegative` elements are at least 0; where one is 0, its gradient may be above 0."""
    gradient = a @ x - b
    bounded = np.zeros(len(x), bool)
    bounded[:nonnegative] = True
    if (x[bounded] < 0).any():
        return np.inf
    gradient = np.where(bounded & (x == 0), np.minimum(gradient, 0), gradient)
    scale = np.linalg.norm(a, 2) * np.linalg.norm(x) + size
    return np.linalg.norm(gradient) / scale if scale > 0 else np.linalg.norm(gradient)


def predictions(users, items):
    """Predictions of all pairs and the most that float32 sums may err."""
    terms = users[:, None, :] * items[None, :, :]
    return terms.sum(2), 2 * EPSILON * (users.shape[1] + 2) * np.abs(terms).sum(2)


def order(scores, allowed):
    """Numbers of the allowed items, the highest score first, equal scores by number."""
    return sorted(np.flatnonzero(allowed), key=lambda item: (-scores[item], item))


def unclear(scores, bounds, allowed):
    """True where two scores differ by less than float32 resolves, so that either order is right."""
    ordered = order(scores, allowed)
    gaps = -np.diff(scores[ordered])
    return bool(((gaps > 0) & (gaps <= bounds[ordered[1:]] + bounds[ordered[:-1]])).any())


def listed(ordered, scores, k):
    """For each item the probability that it is among the first k, over all orders of equal scores."""
    chances = np.zeros(len(scores))
    for item in ordered:
        above, tied = (scores[ordered] > scores[item]).sum(), (scores[ordered] == scores[item]).sum()
        chances[item] = min(1, max(0, (k - above) / tied))
    return chances


def ranking(ordered, scores, positives, ks):
    """The metrics of a user, expected over all orders of equal scores; docs/ranking.md, Metrics."""
    groups = []  # of equal scores: first place, items, positives among them
    for place, item in enumerate(ordered):
        if place == 0 or scores[item] != scores[ordered[place - 1]]:
            groups.append([place, 0, 0])
        groups[-1][1] += 1
        groups[-1][2] += item in positives
    count = sum(hits for _, _, hits in groups)
    others = len(ordered) - count
    # At each place: the probability of a positive, and that times the expected number of positives up to it.
    hit, hits_so_far, above = np.zeros(len(ordered)), np.zeros(len(ordered)), 0
    first, auc, none = np.zeros(len(ordered)), 0.0, True
    for start, size, hits in groups:
        here = np.arange(size)
        hit[start : start + size] = hits / size
        earlier = (hits - 1) * here / (size - 1) if size > 1 else 0
        hits_so_far[start : start + size] = hits / size * (above + 1 + earlier)
        if none and hits > 0:
            first[start : start + size] = [comb(size - 1 - j, hits - 1) / comb(size, hits) for j in here]
            none = False
        auc += hits * (others - (start - above) - (size - hits) / 2)
        above += hits
    places = np.arange(len(ordered))
    metrics = {"mrr": (first / (places + 1)).sum(), "auc": auc / (count * others) if others else 1.0}
    for k in ks:
        top, most = places[:k], min(k, count)
        missed = [
            comb(size - min(max(k - start, 0), size), hits) / comb(size, hits) for start, size, hits in groups
        ]
        metrics[f"precision@{k}"] = hit[top].sum() / k
        metrics[f"recall@{k}"] = hit[top].sum() / count
        metrics[f"recall-min@{k}"] = hit[top].sum() / most
        metrics[f"ndcg@{k}"] = (hit[top] / np.log2(top + 2)).sum() / (1 / np.log2(np.arange(most) + 2)).sum()
        metrics[f"map@{k}"] = (hits_so_far[top] / (top + 1)).sum() / most
        metrics[f"hit-rate@{k}"] = 1 - np.prod(missed)
    return metrics
