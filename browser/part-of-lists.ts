import { sharedArray } from '../engine/partition.ts';
import type { ListIndex } from '../operators/serving/lists/list-index.ts';
import { type ListColumns, NO_ITEM, type PageLists } from './page-lists.ts';

/** Columns of one block of signs (cpu/assembly/list-signs.ts). */
const BLOCK = 16;

/**
 * An index of the lists of these numbers, for one search. A search compares a block of columns with the worst
 * of the best so far, so each list begins at the same place of a block as in the whole index: then the same
 * columns are left out by their signs. Lists are in ascending order, as equal ones are ranked.
 */
export async function partOfLists(
  lists: PageLists,
  numbers: readonly number[],
  signal: AbortSignal,
): Promise<ListIndex> {
  const { rank, vectors, normalized, longest, margin, lists: wholeLists } = lists.header;
  const order = numbers.toSorted((a, b) => a - b);
  const columns = await lists.columns(order, signal);
  const starts = placesOf(columns);
  const centers = sharedArray(Float32Array, (order.length + 3) * rank);
  order.forEach((list, i) => centers.set(lists.center(list), i * rank));
  centers.set(lists.features, order.length * rank);
  const shape = { rank, vectors, normalized, longest, margin, wholeLists };
  return { ...shape, centers, starts, ...joined(columns, starts) };
}

/** The first column of each list, and the end. */
function placesOf(columns: readonly ListColumns[]): Uint32Array {
  const starts = sharedArray(Uint32Array, columns.length + 1);
  let end = 0;
  columns.forEach(({ start, items }, i) => {
    starts[i] = end + ((BLOCK + (start % BLOCK) - (end % BLOCK)) % BLOCK);
    end = starts[i] + items.length;
  });
  starts[columns.length] = end;
  return starts;
}

/** The columns of lists that begin at `starts`, with unused columns between them: see ListParts. */
function joined(columns: readonly ListColumns[], starts: Uint32Array): Pick<ListIndex, 'codes' | 'guide'> {
  const [width, all] = [columns[0].width, Math.max(BLOCK, starts[columns.length])];
  const codes = sharedArray(Uint8Array, width * all);
  const guide = sharedArray(Uint32Array, 4 * all);
  const numbers = new Float32Array(guide.buffer);
  guide.fill(NO_ITEM, 3 * all);
  columns.forEach((own, i) => {
    codes.set(own.codes, width * starts[i]);
    numbers.set(own.lengths, starts[i]);
    numbers.set(own.remainders, all + starts[i]);
    numbers.set(own.scales, 2 * all + starts[i]);
    guide.set(own.items, 3 * all + starts[i]);
  });
  return { codes, guide };
}
