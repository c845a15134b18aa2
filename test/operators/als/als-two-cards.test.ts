/** Estimates and plans for two cards, compared with iterations measured on two H200s. */
import { describe, expect, it } from 'vitest';
import type { AlsOptions } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { costOf } from '../../../operators/als/plan/cost.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { type AlsGrid, type SideGrid, alsProblem } from '../../../operators/als/plan/problem.ts';
import { assumedDevices } from '../../../operators/planner/device-rates.ts';

const netflix = { users: 480_189, items: 17_770, ratings: 99_072_112 };
const hugewikiQuarter = { users: 12_500_000, items: 19_890, ratings: 700_000_000 };

const cards = (count: number) => assumedDevices(Array.from({ length: count }, () => 141e9));
const paramsOf = (rank: number, more: Partial<AlsOptions> = {}) =>
  checkAlsParams({ rank, biases: false, solver: 'cg', cgSteps: 4, ...more });

const whole = (q: number, common?: number): SideGrid => ({
  q,
  fixed: 'whole',
  factors: 'device',
  ratings: 'device',
  ...(common === undefined ? {} : { common }),
});
/** Users in parts, from which the items are solved. */
const inParts = (parts: number, items: SideGrid): AlsGrid => ({
  users: { ...whole(parts), fixed: 'parts' },
  items,
});
const everywhere = { ...whole(1, 1), sums: 'partial-equations' as const };

describe('the estimate of an iteration', () => {
  const one = { users: whole(1), items: whole(1) };
  it.each<[string, typeof netflix, number, AlsGrid, number, number]>([
    ['Netflix, one card', netflix, 100, one, 1, 14.8],
    ['Netflix, parts to both cards', netflix, 100, { users: whole(5, 0.42), items: whole(3, 0.26) }, 2, 20.3],
    ['Netflix, steps on both cards', netflix, 100, inParts(2, everywhere), 2, 39],
    ['Netflix, one card', netflix, 200, one, 1, 51.2],
    // These two were measured on H100s, where one card takes 49.1 and 54.4 ms.
    ['Netflix, a fifth on both', netflix, 200, { users: whole(3, 0.2), items: whole(2) }, 2, 39.6],
    ['Netflix, a tenth on both', netflix, 200, { users: whole(5, 0.1), items: whole(2) }, 2, 40.3],
    ['Netflix, steps on both cards', netflix, 200, inParts(2, everywhere), 2, 69.7],
    ['a quarter of Hugewiki, one card', hugewikiQuarter, 100, inParts(4, whole(1)), 1, 221.1],
    ['the same, sums of equations', hugewikiQuarter, 100, inParts(4, whole(2)), 2, 233.3],
    [
      'the same, steps at the owners',
      hugewikiQuarter,
      100,
      inParts(4, { ...whole(2), sums: 'partial-equations' }),
      2,
      186.1,
    ],
    ['the same, steps on both cards', hugewikiQuarter, 100, inParts(4, everywhere), 2, 138.9],
    ['the same, in 8 parts', hugewikiQuarter, 100, inParts(8, everywhere), 2, 153.2],
  ])('is within a quarter of the time measured: %s', (_, problem, rank, grid, count, measured) => {
    const params = sizedParams(paramsOf(rank), problem);
    const { seconds } = costOf(alsProblem(problem, params, cards(count), undefined, { grid }));
    expect(Math.abs((1e3 * seconds) / measured - 1)).toBeLessThan(0.25);
  });
});

describe('the plan for two cards', () => {
  const planned = (problem: typeof netflix, params = paramsOf(100)) =>
    planAls(problem, params, cards(2), undefined, { compares: true });

  it.each<Partial<AlsOptions>>([{}, { solver: 'auto', cgSteps: 'auto' }])(
    'takes the steps on both where a card cannot bind all users: %o',
    (options) => {
      const { choices } = planned(hugewikiQuarter, paramsOf(100, options));
      expect(choices.grid).toMatchObject({
        users: { q: 4, fixed: 'parts' },
        items: { q: 1, common: 1, sums: 'partial-equations' },
      });
    },
  );

  it('uses one of them where the second saves too little, and says so', () => {
    const { devices, reasons, rejected } = planned(netflix, paramsOf(128));
    expect(devices.map(({ place }) => place)).toEqual(['gpu:0', 'cpu']);
    expect(reasons.at(-1)).toMatch(
      /^1 of 2 devices is used: an iteration takes about 19\.\d ms, with all devices 18\.\d ms; a second device must save 13 %$/,
    );
    expect(rejected![0].reason).toBe('saves too little for more devices');
  });

  it.each(['NVIDIA H200', 'NVIDIA H100 80GB HBM3'])('uses both at a large rank: %s', (description) => {
    const { compute, ...others } = cards(2);
    const named = { ...others, compute: compute.map((card) => ({ ...card, description })) };
    const on = (rank: number) =>
      planAls(netflix, paramsOf(rank), named, undefined, { compares: true }).devices.length - 1;
    expect([on(64), on(100), on(200)]).toEqual([1, 1, 2]);
  });

  it('names the solver if that makes devices exchange equations', () => {
    const { reasons } = planned(hugewikiQuarter, paramsOf(100, { solver: 'cholesky' }));
    expect(reasons).toContainEqual(
      expect.stringMatching(/^devices exchange normal equations, which the solver cholesky needs; solver cg/),
    );
  });
});
