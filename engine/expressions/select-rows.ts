import type { RecordBatch } from 'apache-arrow';
import type { Checked } from './check.ts';
import { type PlainNumbers, selectNumbers, type Test } from './compare-kernel.ts';
import { Evaluation } from './evaluate.ts';

import { withScratch } from './scratch.ts';

/** Positions of the rows of a batch for which a predicate is true, ascending; null is false. */
export function selectedRows(predicate: Checked, batch: RecordBatch): Uint32Array {
  return withScratch(() => select(predicate, new Evaluation(batch)));
}

function select(node: Checked, rows: Evaluation, among?: Uint32Array): Uint32Array {
  if (node.kind === 'call' && !node.mayFail) {
    const [left, right] = node.args;
    if (node.name === 'and') return select(right, rows, select(left, rows, among));
    if (node.name === 'or') return union(select(left, rows, among), select(right, rows, among));
    const compared = comparedWith(node, rows);
    if (compared) return compare(compared, among);
  }
  return trueRows(node, rows, among);
}

/** A comparison of numbers with a constant: `value test constant`. */
interface Comparison extends Test {
  readonly values: PlainNumbers;
  readonly valid?: Uint8Array;
  readonly constant: number;
}

const tests: Readonly<Record<string, Test>> = {
  '<': { test: 'less', inverted: 0 },
  '>=': { test: 'less', inverted: 1 },
  '<=': { test: 'atMost', inverted: 0 },
  '>': { test: 'atMost', inverted: 1 },
  '=': { test: 'equal', inverted: 0 },
  '!=': { test: 'equal', inverted: 1 },
};

function comparedWith(node: Checked & { kind: 'call' }, rows: Evaluation): Comparison | undefined {
  const [left, right] = node.args;
  if (!Object.hasOwn(tests, node.name) || right.kind !== 'constant') return undefined;
  const { values: constants } = right;
  if (constants.form !== 'number' || constants.valid?.[0] === 0) return undefined;
  if (Number.isNaN(constants.values[0])) return undefined;
  const [constant] = constants.values;
  const stored = rows.stored(left);
  if (stored !== undefined && fits(constant, stored.values))
    return { ...stored, constant, ...tests[node.name] };
  const column = rows.values(left);
  if (column.form !== 'number' || column.constant) return undefined;
  return { values: column.values, valid: column.valid, constant, ...tests[node.name] };
}

/** True if the constant is exact in the column's type. */
function fits(constant: number, values: PlainNumbers): boolean {
  if (values instanceof Float32Array) return Math.fround(constant) === constant;
  return values instanceof Float64Array || (constant | 0) === constant;
}

let scratch = new Uint32Array(0);

/**
 * Reused memory for positions; results are copied from it, since fresh memory costs more than the comparison.
 */
function room(length: number): Uint32Array {
  if (scratch.length < length) scratch = new Uint32Array(length);
  return scratch;
}

function compare({ values, valid, constant, ...test }: Comparison, among?: Uint32Array): Uint32Array {
  const out = room(among?.length ?? values.length);
  const count = selectNumbers(values, constant, test, out, among);
  return out.slice(0, valid === undefined ? count : withoutNulls(out, count, valid));
}

/** Keeps the first `count` positions whose rows are valid; returns their number. */
function withoutNulls(positions: Uint32Array, count: number, valid: Uint8Array): number {
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const row = positions[i];
    positions[kept] = row;
    kept += valid[row];
  }
  return kept;
}

function trueRows(node: Checked, rows: Evaluation, among?: Uint32Array): Uint32Array {
  const column = rows.values(node);
  const length = rows.batch.numRows;
  const { valid } = column;
  if (column.form !== 'bool') return new Uint32Array(0);
  if (column.constant) {
    if (column.values[0] === 0 || valid?.[0] === 0) return new Uint32Array(0);
    return among ?? Uint32Array.from({ length }, (_, i) => i);
  }
  const bytes = column.values;
  const size = among?.length ?? length;
  const out = room(size);
  let count = 0;
  for (let k = 0; k < size; k++) {
    const row = among === undefined ? k : among[k];
    out[count] = row;
    count += valid === undefined ? bytes[row] : bytes[row] & valid[row];
  }
  return out.slice(0, count);
}

function union(left: Uint32Array, right: Uint32Array): Uint32Array {
  const out = new Uint32Array(left.length + right.length);
  let count = 0;
  let i = 0;
  let j = 0;
  while (i < left.length && j < right.length) {
    const a = left[i];
    const b = right[j];
    out[count++] = Math.min(a, b);
    i += Number(a <= b);
    j += Number(b <= a);
  }
  while (i < left.length) out[count++] = left[i++];
  while (j < right.length) out[count++] = right[j++];
  return out.slice(0, count);
}
