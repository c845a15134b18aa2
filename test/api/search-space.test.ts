import { describe, expect, it } from 'vitest';
import { ALS, TrainValidationSplit } from '../../index.ts';
import type { TrialParams } from '../../api/validation/tuning/search-space.ts';
import { chainsOf, rungsOf } from '../../api/validation/tuning/search.ts';
import { randomTrials } from '../../api/validation/tuning/search-space.ts';

const als = (params: TrialParams) => new ALS({ maxIter: 6, ...params });

describe('a search space', () => {
  it('gives the first trials of a longer search in a shorter one, within the bounds', () => {
    const space = {
      rank: { from: 4, to: 64, scale: 'log', whole: true },
      regParam: { from: 0.001, to: 1, scale: 'log' },
      start: ['level', 'spark'],
    } as const;
    const long = randomTrials(space, 200, 7);
    expect(long).toHaveLength(200);
    expect(randomTrials(space, 20, 7)).toEqual(long.slice(0, 20));
    expect(randomTrials(space, 20, 8)).not.toEqual(long.slice(0, 20));
    for (const { rank, regParam, start } of long as { rank: number; regParam: number; start: string }[])
      expect(
        Number.isInteger(rank) &&
          rank >= 4 &&
          rank <= 64 &&
          regParam >= 0.001 &&
          regParam <= 1 &&
          ['level', 'spark'].includes(start),
      ).toBe(true);
    const small = (long as { regParam: number }[]).filter(({ regParam }) => regParam < 0.0316).length;
    expect(small).toBeGreaterThan(70);
    expect(small).toBeLessThan(130);
    expect(
      new TrainValidationSplit({
        estimator: als,
        space,
        trials: 5,
        seed: 7,
        first: [{ rank: 10 }],
      }).trials.map(({ params }) => params),
    ).toEqual([{ rank: 10 }, ...long.slice(0, 4)]);
    expect(randomTrials({ rank: [1, 2], biases: [true, false] }, 30, 0)).toHaveLength(4);
  });

  it('is refused where it has no values', () => {
    const make = (space: object) => () => new TrainValidationSplit({ estimator: als, space: space as never });
    expect(make({})).toThrow('the search space is empty');
    expect(make({ rank: [] })).toThrow('no value for rank');
    expect(make({ regParam: { from: 1, to: 0 } })).toThrow('whose bounds ascend');
    expect(make({ regParam: { from: 0, to: 1, scale: 'log' } })).toThrow('begins above 0');
    expect(make({ rank: [0] })).toThrow('rank must be');
    // @ts-expect-error No metric of this name.
    expect(() => new TrainValidationSplit({ estimator: als, grid: [{}], metric: 'ndgc@20' })).toThrow('ndgc');
  });
});

describe('schedules', () => {
  it('thin out by thirds and end with all iterations', () => {
    expect(rungsOf(27, 10).map(({ share, survivors }) => [share, survivors])).toEqual([
      [1 / 9, 9],
      [1 / 3, 3],
      [1, 1],
    ]);
    expect(rungsOf(1, 10)).toEqual([{ share: 1, survivors: 1 }]);
    expect(rungsOf(100, 1)).toEqual([{ share: 1, survivors: 1 }]);
  });

  it('put the trials that differ in λ alone into one chain, from the largest', () => {
    const trials = [0.1, 1, 0.01].flatMap((regParam, at) =>
      [4, 8].map((rank, k) => ({ number: 2 * at + k + 1, params: { rank, regParam } })),
    );
    expect(chainsOf(trials, true).map((chain) => chain.map(({ number }) => number))).toEqual([
      [3, 1, 5],
      [4, 2, 6],
    ]);
    expect(chainsOf(trials, false)).toHaveLength(6);
  });
});
