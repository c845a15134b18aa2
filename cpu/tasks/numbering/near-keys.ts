import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import { codedKeys, isCounted, type NumberedKeys } from '../../../engine/keys/tables/make-key-table.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { SCRATCH_BYTES, type TaskScope } from '../../handler.ts';

/**
 * Numbers copied to scratch at a time, few enough for the core's cache. WebAssembly kernels process them,
 * since these are compiled once for all threads: each thread would take longer to compile JavaScript loops
 * than to run them.
 */
export const WINDOW = 1 << 16;
/** Bytes of scratch before a table of counts: a window of int64, and the range of ids. */
const TABLE_AT = 8 * WINDOW + 64;
/** Entries of a table of counts in scratch. */
export const TABLE = (SCRATCH_BYTES - TABLE_AT) / 4;

/**
 * Writes codes of a chunk's ids to `codes`. If all ids fit int32 and are in a narrow range, a code is the
 * distance from the least id; else ids are numbered (see NumberedKeys).
 */
export function numberColumn(scope: TaskScope, column: KeyColumn, codes: Uint32Array): NumberedKeys {
  const range = column.type === 'utf8' ? undefined : rangeOf(scope, column, codes.length);
  return range === undefined || column.type === 'utf8'
    ? codedKeys(column, codes)
    : nearKeys(scope, column, codes, range);
}

type NumberColumn = Exclude<KeyColumn, { type: 'utf8' }>;

/** The least and the greatest id; undefined where an id does not fit int32. */
function rangeOf(
  scope: TaskScope,
  column: NumberColumn,
  rows: number,
): readonly [number, number] | undefined {
  const at = scope.scratch + 8 * WINDOW;
  const range = new Int32Array(scope.memory.buffer, at, 2);
  range.set([2 ** 31 - 1, -(2 ** 31)]);
  for (let from = 0; from < rows; from += WINDOW) {
    const n = Math.min(WINDOW, rows - from);
    if (!takeWindow(scope, column, from, n)) return undefined;
    scope.kernels.widenRange(scope.scratch, n, at);
  }
  return [range[0], range[1]];
}

/** Codes ids by their distance from the least one. `codes` may be the memory of the ids themselves. */
function nearKeys(
  scope: TaskScope,
  column: NumberColumn,
  codes: Uint32Array,
  range: readonly [least: number, greatest: number],
): NumberedKeys {
  const [least, greatest] = range;
  const { kernels, scratch, memory } = scope;
  const width = greatest - least + 1;
  const counts = sharedArray(Int32Array, isCounted(width, codes.length) ? width : 0);
  const window = new Uint32Array(memory.buffer, scratch, WINDOW);
  let first = 0;
  do {
    const part = counts.subarray(first, first + TABLE);
    const table = zeroTable(scope, part.length);
    for (let from = 0; from < codes.length; from += WINDOW) {
      const n = Math.min(WINDOW, codes.length - from);
      if (first === 0) {
        takeWindow(scope, column, from, n);
        kernels.subtractLeast(scratch, n, least);
        codes.set(window.subarray(0, n), from);
      } else window.set(codes.subarray(from, from + n));
      if (part.length > 0) kernels.countCodes(scratch, n, -first, table.byteOffset, part.length);
    }
    part.set(table);
    first += TABLE;
  } while (first < counts.length);
  return {
    codes,
    keys: { layout: 'id-counts', rows: counts.length, columns: { counts } },
    summary: { range },
  };
}

/** Copies n ids to scratch as int32. Returns false if an id does not fit. */
function takeWindow(
  { memory, scratch, kernels }: TaskScope,
  column: NumberColumn,
  from: number,
  n: number,
): boolean {
  if (column.type === 'int32') {
    new Int32Array(memory.buffer, scratch, n).set(column.values.subarray(from, from + n));
    return true;
  }
  new Int32Array(memory.buffer, scratch, 2 * n).set(column.halves.subarray(2 * from, 2 * (from + n)));
  return kernels.takeLowHalves(scratch, n) === 1;
}

/** A table of counts in scratch, after the window. */
export function zeroTable({ memory, scratch }: TaskScope, entries: number): Int32Array {
  return new Int32Array(memory.buffer, scratch + TABLE_AT, entries).fill(0);
}

/**
 * True if all numbers are finite: exactly then their float64 sum is finite, since float32 numbers cannot
 * overflow it.
 */
export function areFinite({ memory, scratch, kernels }: TaskScope, values: Float32Array): boolean {
  const window = new Float32Array(memory.buffer, scratch, WINDOW);
  for (let from = 0; from < values.length; from += WINDOW) {
    const some = values.subarray(from, from + WINDOW);
    window.set(some);
    if (!Number.isFinite(kernels.sumOf(scratch, some.length))) return false;
  }
  return true;
}
