/**
 * Devices add up vectors in each step of conjugate gradients, computed from ratings or from partial
 * equations. The model must equal, within float32, the model of one device that solves whole rows.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type AlsOptions, type Model, Session } from '../../../index.ts';
import { errorsOf, expectErrors, fitGrid } from '../../support/compared-grids.ts';

const grids: Partial<AlsOptions>[] = [
  { partitionUsers: '2,2', partitionItems: '2,2' },
  { partitionUsers: '4,1' },
  { partitionItems: '4,1' },
  { partitionUsers: '1,3', partitionItems: '3,5' },
  { partitionUsers: '4,4', partitionItems: '4,4' },
];

/** Grids to test the exchange of partial equations. With `2,1` each of two devices steps all rows. */
const fewGrids = [grids[0], grids[3], { partitionItems: '2,1' }, { partitionUsers: '2,1' }];

const settings: [string, AlsOptions][] = [
  ['explicit, with biases', { biasDamping: 3, regOffset: 0.5 }],
  ['explicit, without biases', { biases: false, cgSteps: 6 }],
  ['more steps than rows need', { cgSteps: 40 }],
  ['implicit', { implicitPrefs: true }],
  ['implicit, with the weights of iALS', { implicitPrefs: true, unobservedWeight: 0.1 }],
];

let session: Session;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2 });
});
afterAll(() => session.close());

const fit = (on: Session, options: AlsOptions): Promise<Model> =>
  fitGrid(on, { maxIter: 2, solver: 'cg', ...options });

describe('ALS that exchanges vectors', () => {
  it.each([1, 2, 4])(
    'on %i devices in the place of one CPU gives the model of one that solves whole rows',
    async (fakeDevices) => {
      await using several = await Session.create({ device: 'cpu', workers: 2, fakeDevices });
      for (const [name, options] of settings) {
        const expected = errorsOf(await fit(session, options));
        for (const grid of grids) {
          const partitionSums = 'vectors';
          expectErrors(await fit(several, { ...options, ...grid, partitionSums }), expected, { name, grid });
        }
        for (const grid of fewGrids) {
          const partitionSums = 'partial-equations';
          expectErrors(await fit(several, { ...options, ...grid, partitionSums }), expected, {
            name,
            grid,
            partitionSums,
          });
        }
      }
    },
  );
});
