/** The same model, within float32, from grids of R on 1, 2 and (in the deep run) 4 devices, on the software adapter. */
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Session } from '../../index.ts';
import { isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { sharedSession } from '../support/shared-sessions.ts';

const sets = [
  randomRatings(51, 120, 80, 3000),
  randomRatings(53, 60, 140, 2500),
  randomRatings(54, 200, 20, 2000),
] as const;
const grids: Partial<AlsOptions>[] = [
  {},
  { partitionUsers: '1,4', partitionItems: '1,4' },
  { partitionUsers: '2,2', partitionItems: '2,2' },
  { partitionUsers: '4,1' },
  { partitionItems: '4,1' },
];
const settings: AlsOptions[] = [
  { rank: 9 },
  { rank: 9, biases: false, solver: 'cg', cgSteps: 20 },
  { rank: 9, implicitPrefs: true },
  { rank: 9, solver: 'cg', cgSteps: 12 },
  { rank: 9, implicitPrefs: true, solver: 'cg', cgSteps: 6 },
];
const vectors: Partial<AlsOptions>[] = [
  { partitionUsers: '2,2', partitionItems: '2,2', partitionSums: 'vectors' },
  { partitionItems: '4,2', partitionSums: 'vectors' },
];
const partial: Partial<AlsOptions>[] = [
  { partitionUsers: '2,2', partitionItems: '2,2', partitionSums: 'partial-equations' },
  { partitionItems: '2,1', partitionSums: 'partial-equations' },
];

async function errorOf(session: Session, set: number, options: AlsOptions): Promise<number> {
  const { training } = await new ALS({
    maxIter: 2,
    seed: 3,
    solver: 'cholesky',
    precision: 'f32',
    ...options,
  }).fit(session.from(ratingBatches(sets[set])));
  const { trainRmse, loss } = training!.iterations.at(-1)!;
  return trainRmse ?? Math.log(loss);
}

describe.skipIf(noGpu)('grids of ALS on GPUs', () => {
  const few = [
    [2, 1, grids.slice(1, 2)],
    [2, 2, grids.slice(2, 3)],
    [2, 3, vectors.slice(0, 1)],
    [2, 4, partial.slice(0, 1)],
  ] as const;
  const all = [
    [1, 0, grids.slice(1, 3)],
    [2, 1, grids.slice(0, 3)],
    [2, 2, grids.slice(2, 3)],
    [4, 0, grids.slice(3)],
    [2, 3, vectors],
    [1, 4, vectors.slice(0, 1)],
    [2, 3, partial],
    [2, 4, partial.slice(0, 1)],
  ] as const;
  it.each(isDeep ? all : few)(
    '%i in the place of one give what a CPU gives: settings %i',
    async (fakeDevices, at, some) => {
      const cpu = await sharedSession({ device: 'cpu', workers: 1 });
      const gpus = await sharedSession({ device: 'gpu', workers: 1, fakeDevices });
      const expected = await errorOf(cpu, at % sets.length, settings[at]);
      for (const grid of some)
        expect({
          grid,
          difference:
            Math.abs((await errorOf(gpus, at % sets.length, { ...settings[at], ...grid })) - expected) < 1e-4,
        }).toEqual({ grid, difference: true });
    },
    240_000,
  );
});
