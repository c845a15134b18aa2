/** Blocks of rows that do not fit a worker's memory together, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it } from 'vitest';
import { HeldBlocks } from '../../api/worker/held-blocks.ts';
import type { RowBlock } from '../../api/worker/row-block.ts';
import { everyNth } from '../support/deep.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import type { RowExchange } from '../support/row-workers.ts';
import { RowTraining } from '../support/row-workers.ts';

const BLOCKS = 4;
const params = { rank: 64, maxIter: 2, seed: 3, regParam: 0.05 };
const triples = numberedRatings(20_000, { users: 3000, items: 200 });

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

/** Trains with one worker for all blocks. */
async function trained(exchange: RowExchange, budget?: string) {
  const flags = ['--device', 'cpu', '--workers', '1', ...(budget ? ['--memory-budget', budget] : [])];
  const rows = new RowTraining({ ...params }, triples, BLOCKS, {
    flags,
    exchange,
    precision: 'float16',
    processes: 1,
  });
  open.push(rows);
  await rows.start();
  await rows.iterate();
  await rows.iterate(true);
  const { missing } = rows;
  return { factors: { users: rows.factors('users'), items: rows.factors('items') }, missing };
}

describe('a worker with several blocks', () => {
  it.each(everyNth(['shuffle', 'equations'] as const, 2))(
    'gives up rows, then ratings, where they do not fit, and the factors are the same with the exchange %s',
    async (exchange) => {
      const all = await trained(exchange);
      expect(all.missing).not.toHaveProperty('previous');
      const some = await trained(exchange, '219MiB');
      expect(some.missing).toMatchObject({ previous: expect.any(Number) as number });
      expect(some.missing).not.toHaveProperty('block');
      const one = await trained(exchange, '216MiB');
      expect(one.missing).toMatchObject({ block: expect.any(Number) as number });
      expect(some.factors).toEqual(all.factors);
      expect(one.factors).toEqual(all.factors);
    },
  );

  it('gives up the fixed rows of a block that it gives up', async () => {
    const forgotten: string[] = [];
    const blockOf = (name: string) =>
      ({
        bytes: { kept: 60, rows: 0, loading: 0, solving: 0 },
        forget: async () => void forgotten.push(name),
        name,
      }) as unknown as RowBlock & { readonly name: string };
    const drop = async (block: unknown) =>
      void forgotten.push(`fixed of ${(block as { name: string }).name}`);
    const blocks = new HeldBlocks(100, { drop });
    for (const name of ['a', 'b']) blocks.add(name, blockOf(name));
    await blocks.makeRoom('build', 'b');
    expect(forgotten).toEqual(['fixed of a', 'a']);
    expect(blocks.get('a')).toBeUndefined();
  });
});
