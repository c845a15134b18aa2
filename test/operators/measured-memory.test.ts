import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { comparedMemory } from '../../api/reports/training-report.ts';
import { ALS, type FitOptions, Session, type SessionOptions, SGD } from '../../index.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const ratings = { small: randomRatings(71, 300, 200, 6000), medium: randomRatings(72, 2500, 2000, 60_000) };
const { small } = ratings;

/** Pairs of the same users and items, for errors and metrics while training. */
const validations = {
  small: randomRatings(73, 300, 200, 1000),
  medium: randomRatings(74, 2500, 2000, 12_000),
};

type Size = keyof typeof ratings;
/** Cases by turns take few or many ratings; all take both in the deep run. */
const sizesOf = (number: number): readonly Size[] =>
  isDeep ? ['small', 'medium'] : [number % 4 === 0 ? 'medium' : 'small'];

type Trainer = Pick<ALS, 'fit'>;
type More = SessionOptions &
  Pick<FitOptions, 'checkpointDir' | 'checkpointInterval'> & { readonly validation?: typeof small };

/** The planned and the measured bytes of a run. */
async function memoryOf(
  trainer: Trainer | SGD,
  rows: typeof small,
  device: 'cpu' | 'gpu',
  { validation, checkpointDir, checkpointInterval, ...options }: More = {},
) {
  const session = await Session.create({ device, workers: 2, ...options });
  try {
    const more = {
      ...(validation ? { validation: session.from(ratingBatches(validation, 5000)) } : {}),
      ...(checkpointDir === undefined ? {} : { checkpointDir, checkpointInterval }),
    };
    const { training } = await trainer.fit(session.from(ratingBatches(rows, 5000)), more);
    if (training === undefined) throw new Error('a model that was just trained has no report');
    return comparedMemory(training.plan);
  } finally {
    await session.close();
  }
}

/** Expects the measured bytes to be within a tenth of the plan's. */
function expectAsPlanned({
  planned,
  measured,
}: {
  readonly planned: number;
  readonly measured: number | null;
}): void {
  expect((measured ?? 0) / planned).toBeGreaterThan(0.9);
  expect((measured ?? 0) / planned).toBeLessThan(1.1);
}

type Case = readonly [name: string, make: () => Trainer | SGD];
const withSizes = (cases: readonly Case[]) =>
  cases.map(([name, make], number) => [name, make, sizesOf(number)] as const);

const trainers: readonly Case[] = [
  ['ALS', () => new ALS({ rank: 24, maxIter: 3 })],
  ['implicit ALS', () => new ALS({ rank: 24, maxIter: 3, implicitPrefs: true })],
  ['SGD', () => new SGD({ rank: 24, maxIter: 3 })],
  ['SGD by AdaGrad, Hogwild!', () => new SGD({ rank: 10, maxIter: 3, schedule: 'hogwild', rate: 'adagrad' })],
];

/** Expects the planned memory at each place. */
async function expectAllAsPlanned(
  make: () => Trainer | SGD,
  sizes: readonly Size[],
  options: (size: Size) => More,
): Promise<void> {
  for (const size of sizes) {
    for (const memory of Object.values(await memoryOf(make(), ratings[size], 'cpu', options(size))))
      expectAsPlanned(memory);
  }
}

const six = { rank: 24, maxIter: 6 };
const stopping: readonly Case[] = [
  // The course differs with the data: an older version is kept as the best in some runs, in others each round
  // is the best.
  ['ALS', () => new ALS({ ...six, earlyStop: 3 })],
  ['SGD', () => new SGD({ ...six, earlyStop: 3 })],
  [
    'implicit ALS by a metric',
    () => new ALS({ ...six, implicitPrefs: true, earlyStop: 3, earlyStopMetric: 'ndcg@10' }),
  ],
];

describe('memory as measured', () => {
  it.each(withSizes(stopping))(
    'of early stop of %s is as planned for the course that the run took',
    async (_, make, sizes) => {
      await expectAllAsPlanned(make, sizes, (size) => ({ validation: validations[size] }));
    },
  );

  it.each(isDeep ? [2, 4] : [2])(
    'of %i devices in the place of one CPU is as planned, with parts of unlike rows and their copies',
    async (fakeDevices) => {
      const cases = trainers.filter(([name]) => !name.includes('AdaGrad'));
      for (const [number, [, make]] of cases.entries())
        await expectAllAsPlanned(make, sizesOf(number + fakeDevices / 2), () => ({ fakeDevices }));
      await expectAllAsPlanned(
        () => new ALS({ ...six, earlyStop: 3 }),
        sizesOf(fakeDevices / 2),
        (size) => ({ fakeDevices, validation: validations[size] }),
      );
    },
  );

  it.each(
    withSizes([
      ['ALS with early stop', () => new ALS({ ...six, earlyStop: 3 })],
      ['SGD', () => new SGD(six)],
    ]),
  )('of %s with checkpoints, whose copies count, is as planned', async (name, make, sizes) => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-measured-'));
    try {
      await expectAllAsPlanned(make, sizes, (size) => ({
        checkpointDir: join(folder, size),
        checkpointInterval: 2,
        ...(name === 'ALS with early stop' ? { validation: validations[size] } : {}),
      }));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.each(withSizes(trainers))('of %s on the CPU is as planned', async (_, make, sizes) => {
    for (const size of sizes) {
      const { host, cpu } = await memoryOf(make(), ratings[size], 'cpu');
      expectAsPlanned(host);
      expectAsPlanned(cpu);
    }
  });

  it.skipIf(noGpu).each(
    everyNth(
      trainers.filter(([name]) => !name.includes('AdaGrad')),
      2,
      1,
    ),
  )('of %s on a GPU is as planned', async (_, make) => {
    const memory = await memoryOf(make(), small, 'gpu');
    expectAsPlanned(memory['gpu:0']);
    // The second copy of factors in host memory is made in runs of more than two seconds.
    expect(memory.host.measured).toBeGreaterThan(0.5 * memory.host.planned);
    expect(memory.host.measured).toBeLessThan(1.1 * memory.host.planned);
  });
});
