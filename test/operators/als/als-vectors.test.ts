/**
 * Devices add up vectors in each step of conjugate gradients, computed from ratings or from partial
 * equations. The model must equal, within float32, the model of one device that solves whole rows.
 */
import { beforeAll, describe, it } from 'vitest';
import { type AlsOptions, type Model, Session } from '../../../index.ts';
import { errorsOf, expectErrors, fitGrid } from '../../support/compared-grids.ts';
import { byPairs, product } from '../../support/deep.ts';

const grids: Partial<AlsOptions>[] = [
  { partitionUsers: '2,2', partitionItems: '2,2' },
  { partitionUsers: '4,1' },
  { partitionItems: '4,1' },
  { partitionUsers: '1,3', partitionItems: '3,5' },
  { partitionUsers: '4,4', partitionItems: '4,4' },
];

/** Grids to test the exchange of partial equations. With `2,1` each of two devices steps all rows. */
const fewGrids = [grids[0], grids[3], { partitionItems: '2,1' }, { partitionUsers: '2,1' }];
const exchanges: Partial<AlsOptions>[] = [
  ...grids.map((grid) => ({ ...grid, partitionSums: 'vectors' as const })),
  ...fewGrids.map((grid) => ({ ...grid, partitionSums: 'partial-equations' as const })),
];

const settings: [string, AlsOptions][] = [
  ['explicit, with biases', { biasDamping: 3, regOffset: 0.5 }],
  ['explicit, without biases', { biases: false, cgSteps: 6 }],
  ['more steps than rows need', { cgSteps: 14 }],
  ['implicit', { implicitPrefs: true }],
  ['implicit, with the weights of iALS', { implicitPrefs: true, unobservedWeight: 0.1 }],
];

/** A sample by setting, number of devices, kind of sums, and the sides that are cut. */
const cases = byPairs(
  product({
    fakeDevices: [1, 2, 4],
    at: settings.map((_, at) => at),
    number: exchanges.map((_, k) => k),
  }).map(({ number, ...one }) => ({ ...one, grid: exchanges[number] })),
  ({ fakeDevices, at, grid: { partitionSums, partitionUsers, partitionItems } }) => ({
    fakeDevices,
    setting: at,
    sums: partitionSums!,
    cut: partitionUsers === undefined ? 'items' : partitionItems === undefined ? 'users' : 'both',
  }),
);

const fit = (on: Session, options: AlsOptions): Promise<Model> =>
  fitGrid(on, { maxIter: 2, solver: 'cg', ...options });

/** Errors of each setting where one device solves whole rows. */
const expected: ReturnType<typeof errorsOf>[] = [];
beforeAll(async () => {
  await using session = await Session.create({ device: 'cpu', workers: 2 });
  for (const [, options] of settings) expected.push(errorsOf(await fit(session, options)));
});

describe('ALS that exchanges vectors', () => {
  it.each([1, 2, 4])(
    'on %i devices in the place of one CPU gives the model of one that solves whole rows',
    async (fakeDevices) => {
      await using several = await Session.create({ device: 'cpu', workers: 2, fakeDevices });
      for (const { at, grid } of cases.filter((one) => one.fakeDevices === fakeDevices)) {
        const [name, options] = settings[at];
        expectErrors(await fit(several, { ...options, ...grid }), expected[at], { name, grid });
      }
    },
  );
});
