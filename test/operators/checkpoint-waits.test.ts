import { expect, it } from 'vitest';
import type { Device } from '../../engine/run/device.ts';
import { planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { Session } from '../../index.ts';
import { sizedParams } from '../../operators/als/als-params.ts';
import { chooseKernels } from '../../operators/als/kernel-choices.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { trainAls } from '../../operators/als/train.ts';
import { type Checkpoints, type Matrices, partsOfMatrix } from '../../operators/training/training.ts';
import { secondDevice } from '../support/devices/second-device.ts';
import { testRandom } from '../support/ratings.ts';
import { alsProblem } from '../support/steps/small-problems.ts';

/** Turns of the event loop within which a run that did not wait would continue. */
const TURNS = 50;

/** A store whose writes end only when the run waits for them, and a log of both. */
class SlowStore implements Checkpoints<Matrices> {
  readonly interval: number;
  readonly log: string[] = [];
  readonly #rounds: () => number;
  #writing: { readonly iteration: number; readonly matrices: Matrices; readonly digest: number } | undefined;

  constructor(interval: number, rounds: () => number) {
    [this.interval, this.#rounds] = [interval, rounds];
  }

  resume(): undefined {
    return undefined;
  }

  write({ iteration, factors }: { readonly iteration: number; readonly factors: Matrices }): void {
    expect(this.#writing).toBeUndefined();
    this.#writing = { iteration, matrices: factors, digest: digestOf(factors) };
    this.log.push(`write ${iteration}`);
  }

  async ready(): Promise<void> {
    if (this.#writing === undefined) return;
    const { iteration, matrices, digest } = this.#writing;
    const [rounds, told] = [this.#rounds(), this.log.length];
    for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
    // Meanwhile no round started, and none was reported; the matrices stay as they were given.
    expect([this.#rounds(), this.log.length, digestOf(matrices)]).toEqual([rounds, told, digest]);
    this.#writing = undefined;
    this.log.push(`${iteration} is whole behind round ${rounds}`);
  }
}

function digestOf(matrices: Matrices): number {
  return Object.values(matrices)
    .flatMap(partsOfMatrix)
    .reduce((sum, values) => values.reduce((all, value, at) => all + value * (1 + (at % 97)), sum), 0);
}

/** The log of a training of `maxIter` iterations, with a checkpoint every `interval`. */
async function logOf(interval: number, maxIter: number): Promise<readonly string[]> {
  const random = testRandom(5);
  const rows = Array.from({ length: 60 }, () =>
    Array.from({ length: 30 }, (_, item) => item).filter(() => random() < 0.3),
  );
  const data = alsProblem(
    rows,
    30,
    rows.map((row) => row.slice(0, 1)),
  );
  await using session = await Session.create({ device: 'cpu', workers: 1 });
  const device = secondDevice();
  (session.context().executor.devices as Device[]).push(device);
  // Each of the two sides is solved by one task.
  const store = new SlowStore(interval, () =>
    Math.floor(device.ran.filter(({ kernel }) => kernel === 'update').length / 2),
  );
  const params = sizedParams(checkAlsParams({ rank: 4, maxIter, solver: 'cholesky' }), {
    users: 60,
    items: 30,
    ratings: 1,
  });
  const context = session.context({
    onEvent: (event) => void (event.type === 'iteration' && store.log.push(`told ${event.iteration}`)),
  });
  await Holdings.within(context, async (ctx) => {
    const devices = planDevices(ctx.executor);
    const profile = { users: 60, items: 30, ratings: rows.flat().length, testRatings: 60 };
    const plan = planAls(profile, params, devices, await chooseKernels(profile, params, ctx));
    await trainAls(data, params, { devices: devices.compute, plan: () => plan, checkpoints: store }, ctx);
  });
  return store.log;
}

it('the round behind a checkpoint runs while it is written, and is told of once it is whole: a kill loses an interval at most', async () => {
  expect(await logOf(1, 4)).toEqual([
    'told 1',
    'write 1',
    '1 is whole behind round 2',
    'told 2',
    'write 2',
    '2 is whole behind round 3',
    'told 3',
    'write 3',
    '3 is whole behind round 4',
    'told 4',
    'write 4',
  ]);
});

it('rounds between two checkpoints wait for nothing', async () => {
  expect(await logOf(3, 6)).toEqual([
    'told 1',
    'told 2',
    'told 3',
    'write 3',
    '3 is whole behind round 4',
    'told 4',
    'told 5',
    'told 6',
    'write 6',
  ]);
});
