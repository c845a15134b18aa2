import { takeKeys } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName } from '../../../engine/partition.ts';
import { inMemory } from '../../ratings/parts-in-files.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import type { SgdData } from './data.ts';

/**
 * Converts the validation pairs and the training ratings from labels (random row numbers) to positions, and
 * returns them with the ids of users and items in the order of positions.
 */
export async function pairsByPosition(data: SgdData, test: RatingBlock, ctx: ExecutionContext) {
  const [ofRows, ofColumns] = [data.rows, data.columns].map(({ ids, labels }) => takeKeys(ids, labels.label));
  const [users, items] = data.rows.name === 'users' ? [ofRows, ofColumns] : [ofColumns, ofRows];
  const train = byPosition(await inMemory(data.ratings, ctx), data);
  return { users, items, test: byPosition(test, data), train };
}

/**
 * Converts the rows and columns of a block from labels to positions. Rows of the result are users, and the
 * items of a row ascend. The values are not set.
 */
function byPosition(block: RatingBlock, { rows, columns }: Pick<SgdData, 'rows' | 'columns'>): RatingBlock {
  const byUser = rows.name === 'users';
  const [users, items] = byUser ? [rows, columns] : [columns, rows];
  const pairs = (visit: (user: number, item: number) => void) => {
    for (let row = 0; row < block.rows; row++) {
      for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
        const [user, item] = byUser ? [row, block.indices[k]] : [block.indices[k], row];
        visit(users.labels.order[user], items.labels.order[item]);
      }
    }
  };
  const lengths = new Int32Array(users.labels.order.length);
  pairs((user) => lengths[user]++);
  const partition = emptyBlock(lengths);
  const { offsets, indices } = partition.columns as { offsets: Int32Array; indices: Uint32Array };
  const next = offsets.slice();
  pairs((user, item) => (indices[next[user]++] = item));
  for (let user = 0; user < lengths.length; user++) indices.subarray(offsets[user], offsets[user + 1]).sort();
  return blockOf({ name: dataSetName('by-position'), partition: 0, version: 0 }, partition);
}
