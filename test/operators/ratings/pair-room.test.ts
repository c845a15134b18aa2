import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { andThen, fromSource } from '../../../engine/stream/logical-plan.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import type { RatingBlock } from '../../../operators/ratings/ratings.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const file = join(folder, 'ratings.parquet');
const session = await cpuSession({ workers: 3 });
const triples = randomRatings(5, 90, 40, 3000);
await session.from(ratingBatches(triples, 300)).write.parquet(file, { rowGroupSize: 200 });

async function load(splitBytes: number, rowsInMemory?: number) {
  const ctx = session.context();
  const plan = andThen(
    fromSource(new ParquetSource(file)),
    new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }),
  );
  const indexed = await readRatings(
    plan,
    { splitBytes, ...(rowsInMemory !== undefined && { rowsInMemory }) },
    ctx,
  );
  return { indexed, blocks: await sortedBlocks(indexed, 'keep', ctx) };
}

const numbers = ({ offsets, indices, values }: RatingBlock) => [[...offsets], [...indices], [...values]];

describe('the room of coded pairs', () => {
  it('has the block by item in the memory of the chunks, with the bits of a block of its own', async () => {
    const [streamed, roomy] = [await load(1 << 30), await load(600)];
    expect(streamed.indexed.room).toBeUndefined();
    expect(roomy.indexed.chunks.length).toBeGreaterThan(3);
    expect(roomy.blocks.byItem.indices.buffer).toBe(roomy.indexed.room?.columns.users.buffer);
    expect(roomy.blocks.byItem.values.buffer).toBe(roomy.indexed.room?.columns.values.buffer);
    for (const side of ['byUser', 'byItem'] as const)
      expect(numbers(roomy.blocks[side])).toEqual(numbers(streamed.blocks[side]));
  });

  it('is not made for more rows than memory is to hold', async () => {
    expect((await load(600, triples.length - 1)).indexed.room).toBeUndefined();
    expect((await load(600, triples.length)).indexed.room).toBeDefined();
  });
});
