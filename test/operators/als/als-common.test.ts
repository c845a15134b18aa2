/**
 * Rows that every device solves for itself, in place of an exchange: the same model, and a plan that takes
 * them, and fewer devices, by cost.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import { type AlsOptions, Session } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { costOf, pipelineSeconds } from '../../../operators/als/plan/cost.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { type AlsGrid, type SideGrid, alsProblem } from '../../../operators/als/plan/problem.ts';
import { assumedDevices } from '../../../operators/planner/device-rates.ts';
import { everyNth } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { smallAls } from '../../support/small-als.ts';

const side = (q: number, more: Partial<SideGrid> = {}): SideGrid => ({
  q,
  fixed: 'whole',
  factors: 'device',
  ratings: 'device',
  ...more,
});
const gridsOn = (devices: number): Record<string, AlsGrid> => ({
  'users, most of them': { users: side(devices + 1, { common: 0.8 }), items: side(devices) },
  'both sides, several parts a device': {
    users: side(2 * devices + 1, { common: 0.3 }),
    items: side(devices + 1, { common: 0.2 }),
  },
  'devices of different speed': {
    users: side(devices + 1, {
      common: 0.25,
      speeds: Array.from({ length: devices }, (_, n) => (2 * (n + 1)) / devices / (devices + 1)),
    }),
    items: side(devices),
  },
});

const trained = smallAls(8);
const errorOf = (session: Session, options: AlsOptions, grid?: AlsGrid) =>
  trained(session, { precision: 'f32', ...options }, grid);

describe('rows that every device solves', () => {
  let cpu: Session;
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => cpu.close());

  const settings: [string, AlsOptions][] = [
    ['explicit', {}],
    ['explicit, without biases', { biases: false }],
    ['implicit', { implicitPrefs: true }],
  ];
  it.each(everyNth(settings, 2, 1))('give the same model on CPUs, %s', async (_, options) => {
    const expected = await errorOf(cpu, options);
    for (const fakeDevices of everyNth([2, 4], 2)) {
      await using several = await Session.create({ device: 'cpu', workers: 2, fakeDevices });
      for (const [name, grid] of Object.entries(gridsOn(fakeDevices)))
        expect({
          name,
          fakeDevices,
          difference: Math.abs((await errorOf(several, options, grid)) - expected) < 1e-4,
        }).toEqual({ name, fakeDevices, difference: true });
    }
  });

  it.skipIf(noGpu)(
    'give the same model on GPUs',
    async () => {
      await using gpus = await Session.create({ device: 'gpu', workers: 1, fakeDevices: 2 });
      for (const [, options] of [settings[0], settings[2]]) {
        const expected = await errorOf(cpu, options);
        for (const [name, grid] of Object.entries(gridsOn(2)).slice(1, 2))
          expect({
            name,
            options,
            difference: Math.abs((await errorOf(gpus, options, grid)) - expected) < 1e-4,
          }).toEqual({ name, options, difference: true });
      }
    },
    240_000,
  );
});

describe('the seconds of a half-iteration in a pipeline', () => {
  it('are between those of full overlap and the sum of kernels and copies', () => {
    const half = { kernels: 20, copies: 40, parts: 4, perPart: 0, devices: 2 };
    const between = (overlapped: number, sum: number) => overlapped + 0.7 * (sum - overlapped);
    // Three further parts prolong the kernels by 3.5 % each.
    const kernels = 20 * 1.105;
    expect(pipelineSeconds(half)).toBeCloseTo(between(20 / 4 + 40, kernels + 40));
    expect(pipelineSeconds({ ...half, copies: 8 })).toBeCloseTo(between(kernels + 8 / 4, kernels + 8));
    expect(pipelineSeconds(half, 0.5)).toBeCloseTo(between(20 * 1.64, 20 * 1.64 + 20));
    expect(pipelineSeconds(half, 0.2)).toBeCloseTo(between((20 * 0.8) / 4 + 40 * 0.8, 20 * 1.34 + 32));
    expect(pipelineSeconds({ ...half, perPart: 1 })).toBeCloseTo(between(20 / 4 + 40 + 8, kernels + 48));
  });
});

describe('plans for several cards', () => {
  const netflix = { users: 480_189, items: 17_770, ratings: 99_072_112 };
  const planOn = (
    gigabytes: readonly number[],
    rank: number,
    { problem = netflix, ...more }: AlsOptions & { problem?: typeof netflix } = {},
  ) =>
    planAls(
      problem,
      checkAlsParams({ rank, biases: false, ...more }),
      assumedDevices(gigabytes.map((one) => one * 1e9)),
      undefined,
      { compares: true },
    );
  const seconds = (...args: Parameters<typeof planOn>) => planOn(...args).estimate!.seconds;

  it.each([16, 32, 64, 100, 128, 200])('are no slower than one card at rank %i', (rank) => {
    for (const count of [2, 4])
      expect(
        seconds(
          Array.from({ length: count }, () => 141),
          rank,
        ),
      ).toBeLessThanOrEqual(seconds([141], rank));
  });

  it('share users that every card solves, with the reason and with what was rejected', () => {
    const plan = planOn([141, 141], 160, { precision: 'f16' });
    expect(plan.choices.grid).toMatchObject({ users: { common: expect.any(Number) } });
    expect(stageNamed(plan, 'update-users').reasons).toEqual([
      expect.stringMatching(
        /^the last part, \d+ % of the ratings, is solved on every device: this takes less time than an exchange of its users$/,
      ),
    ]);
    expect(plan.rejected!.map(({ name, reason }) => [name, reason])).toContainEqual([
      '1 of 2 devices: X whole, solved in 1 part; Θ whole, solved in 1 part; ratings resident',
      'slower',
    ]);
  });

  it('leave cards out that would save nothing', () => {
    const plan = planOn([141, 141, 141], 8, { problem: { users: 2000, items: 1000, ratings: 100_000 } });
    expect(plan.devices.map(({ place }) => place)).toEqual(['gpu:0', 'cpu']);
    expect(plan.rejected![0].name).toMatch(/^2 of 3 devices: /);
  });

  it('take one card for implicit data, whose Gram matrices of parts cost what a second one saves', () => {
    const planImplicit = (cards: number) =>
      planAls(
        netflix,
        checkAlsParams({ rank: 128, implicitPrefs: true }),
        assumedDevices(Array.from({ length: cards }, () => 141e9)),
        undefined,
        { compares: true },
      );
    const plan = planImplicit(2);
    expect(plan.devices.map(({ place }) => place)).toEqual(['gpu:0', 'cpu']);
    expect(plan.rejected!.map(({ name }) => name)).toContainEqual(
      expect.stringMatching(/^X whole, solved in \d parts? with \d+ % on every device/),
    );
    expect(Math.abs(planImplicit(1).estimate!.seconds / 34.9e-3 - 1)).toBeLessThan(0.05);
    // Measured: 30.6 ms, before the last changes of kernels.
    const grid = { users: side(3, { common: 0.38 }), items: side(3, { common: 0.2 }) };
    const problem = alsProblem(
      netflix,
      sizedParams(checkAlsParams({ rank: 128, implicitPrefs: true }), netflix),
      assumedDevices([141e9, 141e9]),
      undefined,
      { grid },
    );
    expect(Math.abs(costOf(problem).seconds / 30.6e-3 - 1)).toBeLessThan(0.1);
  });

  it('give cards of different speed parts by their speed', () => {
    const { datasets, choices } = planOn([80, 141], 256);
    const { users } = choices.grid as AlsGrid;
    expect(users.speeds![1]).toBeCloseTo(2.4 / 3.4, 2);
    const parts = datasets.find(({ name }) => name === 'users')!.parts;
    expect(parts[1].rows / parts[0].rows).toBeCloseTo(2.4, 1);
  });
});
