/** The home of ratings that are more than one block has. */
import { describe, expect, it } from 'vitest';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { gridOf } from '../../../operators/als/plan/problem.ts';
import { planFit, chooseStorage, requireRowFits } from '../../../operators/als/plan/ratings-home.ts';
import { cpuInfo } from '../../support/devices/device-info.ts';

const planOf = (ratings: number) => (options: Parameters<typeof planAls>[4]) =>
  planAls(
    { users: 10_000_000, items: 20_000, ratings },
    checkAlsParams({ rank: 8 }),
    { compute: [cpuInfo], host: cpuInfo },
    undefined,
    options,
  );
const budget = { memoryBudget: 2 ** 40, workers: 2 };

describe('more ratings than a block has', () => {
  it('lie in memory in the parts of their grid, where memory holds them', () => {
    expect(chooseStorage(true, planOf(2 ** 30 - 1), 2 ** 30 - 1, budget)).toMatchObject({ kind: 'memory' });
    expect(chooseStorage(true, planOf(3e9), 3e9, budget)).toMatchObject({
      kind: 'parts',
      grid: { users: { q: 4 }, items: { q: 4 } },
    });
    expect(chooseStorage(true, planOf(9e9), 9e9, budget)).toMatchObject({
      kind: 'parts',
      grid: { users: { q: 16 }, items: { q: 16 } },
    });
  });

  it('lie in files where it does not', () => {
    const home = chooseStorage(true, planOf(3e9), 3e9, { ...budget, memoryBudget: 4e9 });
    expect(home).toMatchObject({ kind: 'spill', partRatings: 2 ** 22 });
    expect(home.plan.memory.spill).toBeGreaterThan(16 * 3e9);
  });

  it('are refused where one user or item has more of them than memory holds beside the plan', () => {
    const given = { ...budget, memoryBudget: 4e9 };
    const home = chooseStorage(true, planOf(3e9), 3e9, given);
    const row = (ratings: number) => ({ name: 'item 7', ratings });
    for (const ratings of [1, 2 ** 22, 4e7]) requireRowFits(home, 3e9, row(ratings), given);
    expect(() => requireRowFits(home, 3e9, row(2e8), given)).toThrow(
      /^plan: item 7 has 200,000,000 ratings, which stay in one part: the run needs about \d+\.\d GiB but the memory budget is 3\.7 GiB\. Raise memoryBudget to \d+\.\d GiB or more/,
    );
    const inMemory = chooseStorage(true, planOf(3e9), 3e9, budget);
    requireRowFits(inMemory, 3e9, row(2e9), given);
  });

  it('are refused where ratings are kept for further runs', () => {
    expect(() => chooseStorage(false, planOf(3e9), 3e9, budget)).toThrow(
      '3,000,000,000 ratings are more than the 1,073,741,823 of a block in memory',
    );
  });
});

describe('the plan of sorted ratings', () => {
  const setting = {
    params: checkAlsParams({ rank: 8 }),
    devices: { compute: [cpuInfo], host: cpuInfo },
    mayBeInParts: true,
    interval: undefined,
  };
  const asRead = (ratings: number) => ({ users: 1_000_000, items: 20_000, ratings });

  it.each([
    ['memory', 1e8, 2 ** 40],
    ['parts', 3e9, 2 ** 40],
    ['spill', 3e9, 4e9],
  ] as const)('in %s only refines the one that was expected', (kind, ratings, memoryBudget) => {
    const own = { ...setting, budget: { memoryBudget, workers: 1 } };
    const home = planFit(own, asRead(ratings));
    const parts = home.kind === 'spill' ? 3 : 1;
    expect(home.kind).toBe(kind);
    const known = { ...asRead(0.9 * ratings), testRatings: 1000 };
    const refined = planFit(own, known, undefined, { home, parts: { users: parts, items: parts } });
    expect(refined).toEqual({ ...home, plan: refined.plan });
    const { sizes, params, devices, choices, rounds } = refined.plan;
    expect(sizes).toEqual({ ...home.plan.sizes, ratings: 0.9 * ratings, testRatings: 1000 });
    expect({ params, devices, rounds }).toMatchObject({
      params: home.plan.params,
      devices: home.plan.devices,
      rounds: home.plan.rounds,
    });
    if (kind === 'spill') expect(choices.grid).toMatchObject({ users: { q: 3 }, items: { q: 3 } });
    else expect(gridOf(refined.plan)).toEqual(gridOf(home.plan));
  });
});
