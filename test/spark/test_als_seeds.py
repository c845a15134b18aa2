"""
The cases of ALSSuite that depend on the random start, at 20 seeds with Spark's own ALS and with FactorFlow:
FactorFlow may miss a case's target at no more seeds than Spark's own. `npm run test:spark -- seeds` runs it.
"""

import pyspark

from als_cases import CASES
from support import plain

SEEDS = range(20)


def test_failures_of_20_seeds_are_not_more_than_of_sparks_own(spark):
    fits = {"Spark": lambda als, df: plain(als).fit(df), "FactorFlow": lambda als, df: als.fit(df)}
    print(f"\nPySpark {pyspark.__version__}, {len(SEEDS)} seeds\n\n| case | allowed error |", end="")
    print(*(f" {name}: seeds above it, median error |" for name in fits), sep="", flush=True)
    print("|---|---|---|---|")
    more = []
    for case in CASES:
        counts, cells = {}, []
        for name, fit in fits.items():
            errors = sorted(case.error(fit, spark, seed) for seed in SEEDS)
            counts[name] = sum(not error < case.target for error in errors)
            cells.append(f"{counts[name]}, {errors[len(errors) // 2]:.4f}")
        print(f"| {case.name} | {case.target} | {' | '.join(cells)} |", flush=True)
        if counts["FactorFlow"] > counts["Spark"]:
            more.append(case.name)
    assert more == []
