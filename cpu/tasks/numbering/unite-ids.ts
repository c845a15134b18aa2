import { keyArrays, keysFromArrays, takeKeys } from '../../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../../engine/keys/tables/make-key-table.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `unite-ids` of ReadingTasks. */
export const uniteIds: TaskHandler<'unite-ids'> = (scope) => {
  const { share, shares, chunks } = scope.params;
  const table = makeKeyTable(keysFromArrays(scope.partition('keys.0').columns, 'key').type);
  let totals = new Int32Array(1024);
  const found: { readonly codes: Uint32Array; readonly numbers: Uint32Array }[] = [];
  for (let chunk = 0; chunk < chunks && !scope.cancelled(); chunk++) {
    const { columns } = scope.partition(`keys.${chunk}`);
    const keys = keysFromArrays(columns, 'key');
    const codes = ofShare(columns.hashes as Int32Array, share, shares);
    const numbers = new Uint32Array(codes.length);
    table.add(takeKeys(keys, codes), numbers);
    if (table.size > totals.length) {
      const more = new Int32Array(2 * table.size);
      more.set(totals);
      totals = more;
    }
    const counts = columns.counts as Int32Array;
    for (let i = 0; i < codes.length; i++) totals[numbers[i]] += counts[codes[i]];
    found.push({ codes, numbers });
  }
  const order = table.ascending();
  const places = new Uint32Array(order.length);
  for (let place = 0; place < order.length; place++) places[order[place]] = place;
  found.forEach(({ codes, numbers }, chunk) => {
    const map = scope.partition(`map.${chunk}`).columns.map as Uint32Array;
    for (let i = 0; i < codes.length; i++) map[codes[i]] = places[numbers[i]] * shares + share;
  });
  const counts = sharedArray(Int32Array, order.length);
  for (let place = 0; place < order.length; place++) counts[place] = totals[order[place]];
  const keys = takeKeys(table.keys(), order);
  const united = { layout: 'keys', rows: order.length, columns: { ...keyArrays(keys, 'key'), counts } };
  return {
    rows: order.length,
    partitions: { share: united },
    values: { size: order.length, textBytes: keys.type === 'utf8' ? keys.bytes.length : 0 },
  };
};

/**
 * The indices of the hashes that belong to a share. Shares are equal ranges of a hash's upper 16 bits,
 * because hash tables use the lower bits.
 */
function ofShare(hashes: Int32Array, share: number, shares: number): Uint32Array {
  const found = new Uint32Array(hashes.length);
  let count = 0;
  for (let i = 0; i < hashes.length; i++)
    if (Math.imul(hashes[i] >>> 16, shares) >>> 16 === share) found[count++] = i;
  return found.subarray(0, count);
}
