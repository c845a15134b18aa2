/** The memory of a plan is computed from some of its blocks; it is the memory of all of them. */
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../engine/errors.ts';
import { unbound } from '../../engine/plan/physical-plan.ts';
import { peakOf } from '../../engine/run/walk.ts';
import type { AlsParams } from '../../operators/als/als-params.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls, planOrError } from '../../operators/als/plan/plan-als.ts';
import type { SideGrid } from '../../operators/als/plan/problem.ts';
import { assumedDevices } from '../../operators/planner/device-rates.ts';
import { contracts } from '../../operators/tasks/tasks.ts';
import { everyNth } from '../support/deep.ts';

const parts = { fixed: 'parts', factors: 'device', ratings: 'device' } as const;

/** Ways to store the users and the items of a grid. */
const layouts: Readonly<Record<string, Omit<SideGrid, 'q'>>> = {
  'equations of parts on devices': parts,
  'vectors of parts on devices': { ...parts, sums: 'vectors' },
  'partial equations': { ...parts, sums: 'partial-equations' },
  'vectors, ratings at the host': { ...parts, sums: 'vectors', ratings: 'host' },
  'equations of parts at the host': { ...parts, factors: 'host', ratings: 'host' },
};

const inFiles = { ...parts, sums: 'vectors', factors: 'spill', ratings: 'spill' } as const;

const [q, p] = [32, 24];

/** Ratings of each block. If they are known, no block is left out. */
const sizes = (rows: number, columns: number) =>
  Array.from({ length: rows }, () => Array.from({ length: columns }, () => 1));

function peaks(side: Omit<SideGrid, 'q'>, devices: number, extra: number) {
  const plan = planAls(
    { users: q * 400 + extra, items: p * 50 + extra, ratings: 1_000_000 },
    checkAlsParams({ rank: 8, solver: 'cg', earlyStop: 2 }),
    assumedDevices(Array.from({ length: devices }, () => 1e9)),
    undefined,
    { grid: { users: { ...side, q }, items: { ...side, q: p } } },
  );
  const bound = unbound(plan);
  const blockSizes = { 'ratings-by-user': sizes(q, p), 'ratings-by-item': sizes(p, q) };
  return {
    sampled: peakOf(bound, contracts, plan.keep),
    whole: peakOf({ ...bound, blockSizes }, contracts, plan.keep),
  };
}

describe.each([1, 2])('the memory of a plan for %i devices', (devices) => {
  it.each(Object.keys(layouts))('is the memory of all its blocks: %s', (name) => {
    const { sampled, whole } = peaks(layouts[name], devices, 0);
    expect(sampled).toEqual(whole);
  });

  it.each([
    ['their rows differ by one', layouts['vectors, ratings at the host'], 17],
    ['factors are in files', inFiles, 0],
  ] as const)('is nearly the memory of all its blocks if %s', (_, side, extra) => {
    const { sampled, whole } = peaks(side, devices, extra);
    for (const [place, bytes] of Object.entries(whole))
      expect(Math.abs(sampled[place] / bytes - 1)).toBeLessThan(0.03);
  });
});

describe('a plan that fits no device', () => {
  const planOn = (bytes: number, devices: number, params: Partial<AlsParams> = {}) =>
    planAls(
      { users: 6_040, items: 3_706, ratings: 1_000_209 },
      checkAlsParams({ rank: 32, ...params }),
      assumedDevices(Array.from({ length: devices }, () => bytes)),
      undefined,
      { compares: true },
    );

  it.each(everyNth([1, 2], 2))('is refused with the least memory that works, devices: %i', (devices) => {
    const errorOf = (bytes: number) => {
      try {
        planOn(bytes, devices);
      } catch (error) {
        if (error instanceof CapacityError) return error.message;
        throw error;
      }
      return undefined;
    };
    const least = Number(
      /the least that a device needs is .*? \((\d+) bytes\)/.exec(errorOf(50_000) ?? '')?.[1],
    );
    expect(errorOf(least)).toBeUndefined();
    expect(errorOf(Math.floor(0.95 * least))).toContain('the least that a device needs is');
  });

  it.each([100, 3_600])('of a tiny implicit set is refused with such an amount, too: %i bytes', (given) => {
    const params = checkAlsParams({ rank: 8, implicitPrefs: true });
    const planOf = (bytes: number, compares = false) =>
      planOrError(() =>
        planAls({ users: 8, items: 8, ratings: 40 }, params, assumedDevices([bytes]), undefined, {
          compares,
        }),
      );
    const least = Number(/ \((\d+) bytes\), with/.exec(planOf(given, true).error?.message ?? '')?.[1]);
    expect(planOf(least).plan).toBeDefined();
    expect(planOf(Math.floor(0.97 * least)).error).toBeDefined();
  });

  it.each(everyNth([{ partitionItems: '2,2' }, { partitionSums: 'vectors', solver: 'cg' }] as const, 2))(
    'is refused with the least memory of other parts than requested: %j',
    (requested) => {
      expect(() => planOn(50_000, 2, requested)).toThrow(
        /with other parts the least that a device needs is.*Leave the partitions to the planner/s,
      );
    },
  );

  it('is refused without such an amount where host memory is too small', () => {
    expect(() =>
      planAls(
        { users: 6_040, items: 3_706, ratings: 1_000_209 },
        checkAlsParams({ rank: 32 }),
        assumedDevices([50_000]),
        undefined,
        { hostBytes: 100_000 },
      ),
    ).toThrow('more memory of devices alone does not help');
  });
});
