/** Invariants of the steps of any plan: their edges, visits of ratings, freed partitions, and memory. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { peakOf } from '../../../engine/run/walk.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import {
  type BoundProblem,
  type ProblemShape,
  boundAls,
  boundSgd,
  fates,
  gridsOf,
  listsOfRun,
  shapes,
} from '../../support/steps/bound-problems.ts';
import { checkCoverage, checkEdges, LiveSet } from '../../support/steps/check-steps.ts';
import { eagerOrder, lateFrees, orderOf, peakIn } from '../../support/steps/orders.ts';
import { expand } from '../../../engine/run/expand.ts';
import { cpuInfo, gpuInfo } from '../../support/steps/small-problems.ts';
import { testRandom } from '../../support/ratings.ts';
import { sampleSize } from '../../support/deep.ts';

type Fates = Parameters<typeof listsOfRun>[1];

const alsCases = shapes.chain((shape) =>
  fc.record({
    shape: fc.constant(shape),
    grid: fc.option(gridsOf(shape), { nil: undefined }),
    rank: fc.integer({ min: 1, max: 20 }),
    biases: fc.boolean(),
    implicit: fc.boolean(),
    early: fc.boolean(),
    fate: fates,
    seed: fc.nat(),
  }),
);
const sgdCases = fc.record({
  shape: shapes,
  rank: fc.integer({ min: 1, max: 20 }),
  biases: fc.boolean(),
  early: fc.boolean(),
  adaptive: fc.boolean(),
  resident: fc.boolean(),
  hogwild: fc.boolean(),
  schedule: fc.constantFrom(
    'auto' as const,
    'blocks' as const,
    'hogwild' as const,
    'wavefront' as const,
    'tile' as const,
  ),
  fate: fates,
  seed: fc.nat(),
});

type AlsCase = typeof alsCases extends fc.Arbitrary<infer Case> ? Case : never;
type SgdCase = typeof sgdCases extends fc.Arbitrary<infer Case> ? Case : never;

function als({ shape, rank, biases, implicit, early, grid }: AlsCase): BoundProblem {
  // All items are ranked at once.
  const ranked =
    early && implicit && grid
      ? { ...grid, items: { ...grid.items, fixed: 'whole' as const, factors: 'device' as const } }
      : grid;
  return boundAls(
    shape,
    {
      rank,
      ...(implicit ? { implicitPrefs: true } : { biases }),
      ...(early ? { earlyStop: 2, ...(implicit ? { earlyStopMetric: 'ndcg@5' } : {}) } : {}),
    },
    ranked,
  );
}

function sgd({
  shape,
  rank,
  biases,
  early,
  adaptive,
  schedule,
  resident,
  hogwild,
}: SgdCase): Promise<BoundProblem> {
  const [device] = shape.devices;
  const several = shape.devices.length > 1;
  const suits = several ? 'blocks' : device.kind === 'cpu' && schedule === 'tile' ? 'auto' : schedule;
  return boundSgd(
    shape,
    {
      rank,
      biases,
      schedule: suits,
      ...(adaptive ? { rate: 'adagrad' } : {}),
      ...(early ? { earlyStop: 2 } : {}),
    },
    (chosen) =>
      chosen.deviceBlocks
        ? {
            ...chosen,
            deviceBlocks: { ...chosen.deviceBlocks, resident, ...(hogwild ? { steps: 'hogwild' } : {}) },
          }
        : chosen,
  );
}

function checkRun(problem: BoundProblem, fate: Fates): void {
  const { bound, given } = problem;
  const live = new LiveSet(bound, given);
  for (const { name, steps } of listsOfRun(problem, fate)) {
    live.add(steps);
    expect({
      name,
      problems: [...checkEdges(steps, bound), ...checkCoverage(steps, bound), ...live.problems],
    }).toEqual({ name, problems: [] });
  }
  // The data that were given stay, at their homes and at their other places.
  const left = [...live.alive].filter(
    (key) => !given.some(({ name, partition, version }) => key.endsWith(` ${name}/${partition}@${version}`)),
  );
  expect(left).toEqual([]);
}

function checkPeak(problem: BoundProblem, fate: Fates, seed: number): void {
  const { bound, keep } = problem;
  const lists = listsOfRun(problem, fate).map(({ steps }) => steps);
  const random = testRandom(seed + 1);
  const walked = peakOf(bound, contracts, keep);
  const own = peakIn(bound, lists, (steps) => steps);
  // Different blocks are staged in each round, and the walk samples three of them.
  const staged = bound.datasets.some(
    ({ by, given, parts }) => by === 'block' && given && parts.some(({ at }) => at.length === 1),
  );
  const limit = staged ? own : walked;
  const eager = peakIn(bound, lists, (steps) => eagerOrder(steps, bound, random));
  const late = peakIn(bound, lists, (steps) => orderOf(steps, lateFrees));
  const drawn = peakIn(bound, lists, (steps) =>
    orderOf(steps, (ready) => ready[Math.floor(random() * ready.length)]),
  );
  for (const [order, peak] of Object.entries({ own, eager, late, drawn })) {
    for (const [place, bytes] of Object.entries(peak)) {
      if (place !== HOST)
        expect({ order, place, beyond: Math.max(0, bytes - limit[place]) }).toEqual({
          order,
          place,
          beyond: 0,
        });
    }
  }
}

describe('a list of steps', () => {
  it('has no step that frees nothing, so that no device is needed', () => {
    const steps = new StepList(contracts);
    expect(steps.free('free', 'gpu:0', [])).toBeUndefined();
    expect(steps.steps).toEqual([]);
  });
});

describe('the steps of als', () => {
  it('have edges behind which nothing can go wrong, visit each rating once, and leave nothing', () => {
    fc.assert(
      fc.property(alsCases, (one) => checkRun(als(one), one.fate)),
      { numRuns: sampleSize(100) },
    );
  });

  it('take no more memory on a device than was walked, in whichever order their edges allow', () => {
    fc.assert(
      fc.property(alsCases, (one) => checkPeak(als(one), one.fate, one.seed)),
      { numRuns: sampleSize(100) },
    );
  });
});

describe('the steps of als by vectors whose ratings are staged', () => {
  const staged = (devices: ProblemShape['devices'], q: number, p: number) => {
    const rows = Array.from({ length: 8 }, (_, user) =>
      [0, 1, 2, 3, 4, 5].filter((item) => (user + item) % 4 > 0),
    );
    return boundAls(
      { rows, columns: 6, test: false, devices },
      { rank: 2 },
      {
        users: { q: p, fixed: 'parts', factors: 'device', ratings: 'device' },
        items: { q, fixed: 'whole', factors: 'device', ratings: 'host', sums: 'vectors' },
      },
    );
  };

  it('free each copy of a block once', () => {
    for (const [devices, q, p] of [
      [[cpuInfo], 1, 1],
      [[cpuInfo], 1, 3],
      [[cpuInfo], 2, 2],
      [[gpuInfo(0)], 2, 1],
      [[gpuInfo(0), gpuInfo(1)], 1, 2],
      [[gpuInfo(0), gpuInfo(1)], 2, 4],
    ] as const)
      checkRun(staged(devices, q, p), ['best', 'good']);
  });

  it('have a block come once where it is the only one of its rows at the place', () => {
    for (const [devices, q, p] of [
      [[cpuInfo], 1, 1],
      [[gpuInfo(0), gpuInfo(1)], 1, 2],
      [[gpuInfo(0), gpuInfo(1)], 2, 2],
    ] as const) {
      const [, round] = listsOfRun(staged(devices, q, p), ['best']);
      const moved = round.steps.filter(
        ({ stage, do: { kind } }) => kind === 'move' && /^(residuals|products)-items$/.test(stage),
      );
      expect({ q, p, moved: moved.length }).toEqual({ q, p, moved: q * p });
    }
  });
});

describe('the steps of sgd', () => {
  it('have edges behind which nothing can go wrong, visit each rating once, and leave nothing', async () => {
    await fc.assert(
      fc.asyncProperty(sgdCases, async (one) => checkRun(await sgd(one), one.fate)),
      { numRuns: sampleSize(100) },
    );
  });

  it('take no more memory on a device than was walked, in whichever order their edges allow', async () => {
    await fc.assert(
      fc.asyncProperty(sgdCases, async (one) => checkPeak(await sgd(one), one.fate, one.seed)),
      { numRuns: sampleSize(100) },
    );
  });

  it('are all walked where columns pass from device to device, for as many devices as there are', async () => {
    const columns = 40;
    const rows = Array.from({ length: columns }, (_, u) =>
      Array.from({ length: columns }, (__, v) => v).filter((v) => (u + v) % 5 > 0),
    );
    for (const count of [2, 4, 8]) {
      const { bound } = await boundSgd(
        { rows, columns, test: false, devices: Array.from({ length: count }, (_, n) => gpuInfo(n)) },
        { rank: 2, schedule: 'blocks' },
      );
      const { versions } = expand(bound, contracts, 'start', {});
      const round = (more: Partial<typeof bound>) =>
        expand({ ...bound, ...more }, contracts, 'round', versions, {
          number: 1,
          params: { rate: 0.1, epoch: 1, next: 2 },
        }).steps.filter(({ do: { kind } }) => kind === 'task').length;
      const all = round({});
      expect(all).toBeGreaterThan(count * 2 * count);
      expect({ count, sampled: round({ visitsARow: 1 }) }).toEqual({ count, sampled: all });
    }
  });
});
