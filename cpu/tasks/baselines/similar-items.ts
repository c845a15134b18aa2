import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';
import { BestItems } from './best-items.ts';
import { countUsersInCommon, pairsOf } from './users-in-common.ts';

/** See `similar-items` of KernelTasks. */
export const similarItems: TaskHandler<'similar-items'> = (scope) => {
  const { from, to, count, shrink } = scope.params;
  const [byUser, byItem] = [pairsOf(scope, 'byUser'), pairsOf(scope, 'byItem')];
  const items = sharedArray(Uint32Array, (to - from) * count);
  const values = sharedArray(Float32Array, (to - from) * count);
  const usersOf = (item: number) => byItem.offsets[item + 1] - byItem.offsets[item];
  const inCommon = new Int32Array(byItem.offsets.length - 1);
  const found = new Uint32Array(inCommon.length);
  const best = new BestItems(count);
  for (let item = from; item < to && !scope.cancelled(); item++) {
    const others = countUsersInCommon(item, byUser, byItem, inCommon, found).sort();
    best.clear();
    for (const other of others) {
      const users = inCommon[other];
      inCommon[other] = 0;
      if (other !== item) best.offer(other, users / (Math.sqrt(usersOf(item) * usersOf(other)) + shrink));
    }
    items.set(best.items, (item - from) * count);
    values.set(best.scores, (item - from) * count);
  }
  return {
    rows: to - from,
    partitions: { similar: { layout: 'similar-items', rows: to - from, columns: { items, values } } },
  };
};
