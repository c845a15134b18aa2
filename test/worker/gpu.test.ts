/** Workers with a GPU: the software adapter of the tests. */
import { afterEach, describe, expect, it } from 'vitest';
import { everyNth } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { RowTraining } from '../support/row-workers.ts';
import { ratingStream, WorkerParent } from '../support/worker-parent.ts';

const triples = numberedRatings(600, { users: 40, items: 25 });
const gpu = ['--device', 'gpu', '--workers', '1'];

const open: RowTraining[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

async function trained(
  params: {
    readonly rank: number;
    readonly implicitPrefs?: boolean;
    readonly alpha?: number;
    readonly solver?: string;
  },
  blocks: number,
  flags?: readonly string[],
) {
  const rows = new RowTraining({ ...params }, triples, blocks, flags === undefined ? {} : { flags });
  open.push(rows);
  await rows.start();
  for (let k = 0; k < 2; k++) await rows.iterate();
  const { loss } = await rows.loss();
  return { users: rows.factors('users'), loss, codes: await rows.end() };
}

describe.skipIf(noGpu)('a worker with a GPU', () => {
  it('tells of it, and trains there', async () => {
    const parent = new WorkerParent({ flags: gpu });
    parent.feed({ params: { rank: 4, maxIter: 2 } }, ratingStream(triples), 600);
    const { code, frames } = await parent.ended;
    expect(code).toBe(0);
    expect(frames.find(({ header }) => header.type === 'device')?.header).toMatchObject({
      requested: 'gpu',
      kind: 'gpu',
      adapter: expect.stringMatching(/swiftshader/i),
    });
    expect(frames.find(({ header }) => header.type === 'report')?.header).toMatchObject({
      device: 'gpu',
      iterations: [{ iteration: 1 }, { iteration: 2 }],
    });
  });

  it('refuses a card that is not there', async () => {
    const parent = new WorkerParent({ flags: ['--device', 'gpu:63'] });
    parent.feed({}, ratingStream(triples), 600);
    const { code, frames } = await parent.ended;
    expect(code).toBe(2);
    expect(frames.at(-1)?.header).toMatchObject({
      type: 'error',
      code: 'USAGE',
      message: expect.stringMatching(/gpu:63|by number/),
    });
  });

  const kinds = [
    ['implicit data', { rank: 4, implicitPrefs: true, alpha: 3, solver: 'cholesky' }],
    ['explicit ratings', { rank: 4, solver: 'cholesky' }],
  ] as const;
  it.each(everyNth(kinds, 2))(
    'solves blocks of %s as a CPU does, within rounding',
    async (_, params) => {
      const expected = await trained(params, 1);
      const found = await trained(params, 2, gpu);
      expect(found.codes).toEqual([0, 0]);
      expect(found.loss / expected.loss).toBeCloseTo(1, 3);
      expect([...found.users.keys()]).toEqual([...expected.users.keys()]);
      for (const [id, row] of found.users)
        row.forEach((value, k) =>
          expect(Math.abs(value - (expected.users.get(id)?.[k] ?? Number.NaN))).toBeLessThan(5e-3),
        );
    },
    180_000,
  );
});
