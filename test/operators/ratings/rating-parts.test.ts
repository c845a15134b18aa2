import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { andThen } from '../../../engine/stream/logical-plan.ts';
import { Session } from '../../../index.ts';
import type { IndexedRatings } from '../../../operators/ratings/ids/number-ids.ts';
import { labelsOf, relabel } from '../../../operators/ratings/ids/relabel.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { sortByUser, sortRatings, ratingParts } from '../../../operators/ratings/sort-ratings.ts';
import type { DuplicatePolicy } from '../../../operators/tasks/tasks.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { batchOf, randomRatings } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

const rows = [...randomRatings(5, 300, 200, 5000), ...randomRatings(6, 300, 200, 700)];
const batch = batchOf({
  user: { type: 'int32', values: rows.map(({ user }) => user) },
  item: { type: 'int32', values: rows.map(({ item }) => item) },
  rating: { type: 'float32', values: rows.map(({ rating }) => rating) },
  timestamp: { type: 'float64', values: rows.map((_, i) => (i * 7919) % 1000) },
});
const columns = { user: 'user', item: 'item', rating: 'rating', timestamp: 'timestamp' };

const index = (session: Session, ctx: ExecutionContext, rowsInMemory?: number) =>
  readRatings(
    andThen(
      session.from([batch.slice(0, 2000), batch.slice(2000, 4500), batch.slice(4500)]).plan,
      new SelectRatings(columns),
    ),
    { rowsInMemory },
    ctx,
  );

const spillFolders = () => readdirSync(folder).filter((name) => name.startsWith('.factorflow-spill.tmp-'));

describe('rating parts', () => {
  it.each(['keep', 'mean', 'last'] as const)(
    'have the bits of the whole blocks, for %s',
    async (policy: DuplicatePolicy) => {
      await using session = await Session.create({ workers: 2, spillDir: folder });
      const ctx = session.context();
      const whole = await sortedBlocks(await index(session, ctx), policy, ctx);
      for (const spills of [true, false]) {
        const parts = ratingParts(
          await index(session, ctx, spills ? 0 : undefined),
          policy,
          { partRatings: 700, spills, bothSides: true },
          ctx,
        );
        for (const [side, given] of [
          ['byUser', parts.byUser()],
          ['byItem', parts.byItem()],
        ] as const) {
          const block = whole[side];
          let [next, count] = [0, 0];
          for await (const { from, block: part } of given) {
            expect(from).toBe(next);
            // A part ends with a slice, which is balanced by rows and ratings.
            expect(part.ratings).toBeLessThanOrEqual(1000);
            const first = block.offsets[from];
            for (let row = 0; row <= part.rows; row++)
              expect(part.offsets[row]).toBe(block.offsets[from + row] - first);
            expect(part.indices).toEqual(block.indices.slice(first, first + part.ratings));
            expect(part.values).toEqual(block.values.slice(first, first + part.ratings));
            next += part.rows;
            count++;
          }
          expect(next).toBe(block.rows);
          expect(count).toBeGreaterThan(5);
        }
        expect(parts.duplicates).toBe(whole.duplicates);
      }
    },
  );

  it('are joined to the same blocks where chunks were spilled, and leave nothing behind', async () => {
    const session = await Session.create({ workers: 2, spillDir: folder });
    const ctx = session.context();
    const whole = await sortedBlocks(await index(session, ctx), 'mean', ctx);
    const indexed = await index(session, ctx, 3000);
    expect(indexed.spilled).toBe(true);
    const [own] = spillFolders();
    expect(readdirSync(join(folder, own)).length).toBeGreaterThan(0);
    const joined = await sortedBlocks(indexed, 'mean', ctx);
    for (const side of ['byUser', 'byItem'] as const)
      for (const name of ['offsets', 'indices', 'values'] as const)
        expect(joined[side][name]).toEqual(whole[side][name]);
    expect(joined.duplicates).toBe(whole.duplicates);
    await session.close();
    expect(existsSync(join(folder, own))).toBe(false);
  });

  it('are the same where users and items have changed places', async () => {
    await using session = await Session.create({ workers: 3, spillDir: folder });
    const ctx = session.context();
    const blocks = [];
    for (const inMemory of [undefined, 0]) {
      const indexed = await index(session, ctx, inMemory);
      const swapped = await relabel(
        indexed,
        labelsOf(indexed.users, 1, 0),
        labelsOf(indexed.items, 1, 1),
        true,
        ctx,
      );
      blocks.push(await sortByUser(swapped, 'sum', ctx));
    }
    expect(blocks[0].rows).toBe(200);
    for (const name of ['offsets', 'indices', 'values'] as const)
      expect(blocks[1][name]).toEqual(blocks[0][name]);
  });

  it('name the first repeated pair by its ids', async () => {
    await using session = await Session.create({ workers: 2, spillDir: folder });
    const ctx = session.context();
    const message = async (inMemory?: number) => {
      const indexed = await index(session, ctx, inMemory);
      return sortedBlocks(indexed, 'error', ctx).then(
        () => '',
        (error: Error) => error.message,
      );
    };
    expect(await message()).toMatch(
      /^read: [\d,]+ ratings repeat an earlier \(user, item\) pair; the first pair: user -?\d+, item -?\d+/,
    );
    expect(await message(0)).toBe(await message());
    // All parts are counted, including parts after the first with such a pair.
    const inParts = async (
      inMemory: number | undefined,
      build: (indexed: IndexedRatings) => Promise<unknown>,
    ) =>
      build(await index(session, ctx, inMemory)).then(
        () => '',
        (error: Error) => error.message,
      );
    expect(
      await inParts(undefined, (indexed) =>
        sortRatings(indexed, { duplicates: 'error', cut: { users: 5, items: 3, inBlocks: false } }, ctx),
      ),
    ).toBe(await message());
    expect(
      await inParts(0, (indexed) =>
        sortRatings(indexed, { duplicates: 'error', cut: { partRatings: 200 } }, ctx),
      ),
    ).toBe(await message());
  });
});
