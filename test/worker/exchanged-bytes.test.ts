/** The bytes that workers send for a half-iteration, compared with the model by which a cluster plans it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import { sentBytes } from '../../bench/spark/simulate.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { ratingStream, WorkerParent } from '../support/worker-parent.ts';

const rank = 32;
const blocks = 2;
const ratings = numberedRatings(6000, { users: 1200, items: 300 });

describe('of the users of one of two blocks', () => {
  let worker: WorkerParent;
  let built: { readonly sends: readonly number[]; readonly columns: number };

  beforeAll(async () => {
    worker = new WorkerParent();
    worker.write(
      `${JSON.stringify({ protocol: 1, command: 'rows', exchange: 'float16', params: { rank } })}\n`,
    );
    const owners = blocksOfIds({ type: 'int32', values: Int32Array.from(ratings.users as number[]) }, blocks);
    const own = <T>(values: readonly T[]) => values.filter((_, at) => owners[at] === 0);
    const users = own(ratings.users);
    const block = { block: 'users', side: 'users' };
    await worker.ask(
      { type: 'load', ...block },
      ratingStream({ users, items: own(ratings.items), ratings: own(ratings.ratings) }),
    );
    const { answer } = await worker.ask({ type: 'build', ...block, rows: users.length, blocks });
    built = answer.header as unknown as typeof built;
    await worker.ask({ type: 'start', ...block, version: 0, squares: 1, ratings: 1 });
  });

  afterAll(() => worker.child.kill('SIGKILL'));

  async function sent(type: 'send' | 'equations'): Promise<number> {
    let bytes = 0;
    for (let to = 0; to < blocks; to++) {
      const { factors } = await worker.ask({ type, block: 'users', version: 0, to });
      bytes += factors.reduce((sum, { payload }) => sum + payload.length, 0);
    }
    return bytes;
  }

  it('the rows that the items of two blocks need are within 10 % of the model', async () => {
    const rows = built.sends.reduce((sum, one) => sum + one, 0);
    expect(rows).toBeGreaterThan(600);
    expect(Math.abs((await sent('send')) / (rows * sentBytes(rank)) - 1)).toBeLessThan(0.1);
  });

  it('their shares of equations are within 10 % of the model', async () => {
    const model = built.columns * (4 * equationColumns(rank, false) + 8);
    expect(Math.abs((await sent('equations')) / model - 1)).toBeLessThan(0.1);
  });
});
