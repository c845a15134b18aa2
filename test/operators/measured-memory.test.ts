import { describe, expect, it } from 'vitest';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { comparedMemory } from '../../api/reports/compared-memory.ts';
import { ALS, Session, SGD } from '../../index.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const small = randomRatings(71, 300, 200, 6000);
const medium = randomRatings(72, 4000, 3000, 150_000);

type Trainer = Pick<ALS, 'fit'>;

/** The planned and the measured bytes of a run. */
async function memoryOf(trainer: Trainer | SGD, rows: typeof small, device: 'cpu' | 'gpu') {
  const session = await Session.create({ device, workers: 2 });
  try {
    const { training } = await trainer.fit(session.from(ratingBatches(rows, 5000)));
    if (training === undefined) throw new Error('a model that was just trained has no report');
    return comparedMemory(training.plan);
  } finally {
    await session.close();
  }
}

/** Expects the measured bytes to be within a tenth of the plan's. */
function expectAsPlanned({ planned, measured }: { readonly planned: number; readonly measured: number | null }): void {
  expect((measured ?? 0) / planned).toBeGreaterThan(0.9);
  expect((measured ?? 0) / planned).toBeLessThan(1.1);
}

const trainers: readonly (readonly [string, () => Trainer | SGD])[] = [
  ['ALS', () => new ALS({ rank: 24, maxIter: 3 })],
  ['ALS without biases', () => new ALS({ rank: 10, maxIter: 3, biases: false })],
  ['implicit ALS', () => new ALS({ rank: 24, maxIter: 3, implicitPrefs: true })],
  ['SGD', () => new SGD({ rank: 24, maxIter: 3 })],
  ['SGD by AdaGrad, Hogwild!', () => new SGD({ rank: 10, maxIter: 3, schedule: 'hogwild', rate: 'adagrad' })],
];

describe('memory as measured', () => {
  it.each(trainers)('of %s on the CPU is as planned', async (_, make) => {
    for (const rows of [small, medium]) {
      const { host, cpu } = await memoryOf(make(), rows, 'cpu');
      expectAsPlanned(host);
      expectAsPlanned(cpu);
    }
  });

  it.skipIf(noGpu).each(trainers.filter(([name]) => !name.includes('AdaGrad')))('of %s on a GPU is as planned', async (_, make) => {
    const memory = await memoryOf(make(), small, 'gpu');
    expectAsPlanned(memory['gpu:0']);
    // The second copy of factors in host memory is made in runs of more than two seconds.
    expect(memory.host.measured).toBeGreaterThan(0.5 * memory.host.planned);
    expect(memory.host.measured).toBeLessThan(1.1 * memory.host.planned);
  });

  it('ends with a session: all that was held is let go of', async () => {
    const before = hostMeter.now;
    await memoryOf(new ALS({ rank: 4, maxIter: 1 }), small, 'cpu');
    expect(hostMeter.now).toBe(before);
  });
});
