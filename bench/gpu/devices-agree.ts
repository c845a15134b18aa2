/**
 * Checks that every number of devices and every grid gives the same model: compares RMSE after some
 * iterations (default: 3, rank 16), or the logarithm of the implicit loss, with one CPU.
 *
 *     node bench/gpu/devices-agree.ts FOLDER [FOLDER ...] [--device cpu|gpu] [--rank R] [--max-iter N]
 *
 * Each folder has ratings in Parquet. Prints a line for each set and setting with the largest difference;
 * ends with status 1 if one is above 1e-4.
 */
import { parseArgs } from 'node:util';
import { ALS, type AlsOptions, Session } from '../../index.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: 'string', default: 'cpu' },
    rank: { type: 'string', default: '16' },
    'max-iter': { type: 'string', default: '3' },
  },
});
const device = values.device === 'gpu' ? 'gpu' : 'cpu';
const LIMIT = 1e-4;

const grids: readonly Partial<AlsOptions>[] = [
  {},
  { partitionUsers: '1,4', partitionItems: '1,4' },
  { partitionUsers: '2,2', partitionItems: '2,2' },
  { partitionUsers: '4,1' },
  { partitionItems: '4,1' },
];
const settings: Readonly<Record<string, AlsOptions>> = {
  explicit: {},
  'explicit, without biases': { biases: false },
  implicit: { implicitPrefs: true },
};

async function errorOf(session: Session, folder: string, options: AlsOptions): Promise<number> {
  const { training } = await new ALS({
    rank: Number(values.rank),
    maxIter: Number(values['max-iter']),
    seed: 1,
    solver: 'cholesky',
    precision: 'f32',
    ...options,
  }).fit(session.read.parquet(folder));
  const last = training?.iterations.at(-1);
  if (last === undefined) throw new Error(`${folder}: no iteration was reported`);
  return last.trainRmse ?? Math.log(last.loss);
}

/** The largest difference over all numbers of devices and all grids. */
async function furthestFrom(expected: number, folder: string, options: AlsOptions) {
  let [furthest, where] = [0, ''];
  for (const fakeDevices of [1, 2, 4]) {
    await using several = await Session.create({ device, fakeDevices });
    for (const grid of grids) {
      const difference = Math.abs((await errorOf(several, folder, { ...options, ...grid })) - expected);
      if (difference < furthest) continue;
      [furthest, where] = [difference, `${fakeDevices} devices ${JSON.stringify(grid)}`];
    }
  }
  return { furthest, where };
}

await using one = await Session.create({ device: 'cpu' });
for (const folder of positionals) {
  for (const [name, options] of Object.entries(settings)) {
    const expected = await errorOf(one, folder, options);
    const { furthest, where } = await furthestFrom(expected, folder, options);
    console.log(
      `${folder}, ${name}: ${expected.toFixed(6)}, furthest ${furthest.toExponential(1)} with ${where}`,
    );
    if (!(furthest <= LIMIT)) process.exitCode = 1;
  }
}
