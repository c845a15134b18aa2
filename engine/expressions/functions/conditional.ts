import { isNumber, isTime, type ValueType } from '../types.ts';
import { bigsOf, decimals, integers, maskOf, numbersOf, textsOf, type Values, wideOf } from '../values.ts';
import { less, inverted } from './compare.ts';
import { alike, type Argument, type Functions, type Rows, type Signature, boolResult } from './function.ts';

const sameType = alike(() => true);
const atLeastOne = (args: readonly Argument[]): Signature | undefined =>
  args.length > 0 ? sameType(args) : undefined;
const ordered = alike((type) => isNumber(type) || isTime(type) || type === 'utf8' || type === 'bool');

export const conditionals: Functions = {
  coalesce: { takes: '(x, ...)', sign: atLeastOne, seesNulls: true, kernel: coalesce },
  // Nulls are ignored, as in Spark and DuckDB.
  least: {
    takes: '(x, ...)',
    sign: ordered,
    seesNulls: true,
    kernel: (args, rows) => extreme(args, rows, false),
  },
  greatest: {
    takes: '(x, ...)',
    sign: ordered,
    seesNulls: true,
    kernel: (args, rows) => extreme(args, rows, true),
  },
};

function coalesce(args: readonly Values[], rows: Rows): Values {
  const pick = new Int32Array(rows.length).fill(-1);
  args.forEach((column, k) => {
    const [valid, mask] = [column.valid, maskOf(column)];
    for (let i = 0; i < pick.length; i++)
      if (pick[i] === -1 && (valid === undefined || valid[i & mask] === 1)) pick[i] = k;
  });
  return choose(pick, args, rows);
}

function extreme(args: readonly Values[], rows: Rows, greatest: boolean): Values {
  return args.slice(1).reduce((best, next) => {
    const wins = greatest ? less(best, next, rows.length) : less(next, best, rows.length);
    const [mask, bestMask] = [maskOf(next), maskOf(best)];
    const pick = new Int32Array(rows.length);
    for (let i = 0; i < pick.length; i++) {
      const known = next.valid === undefined || next.valid[i & mask] === 1;
      const bestKnown = best.valid === undefined || best.valid[i & bestMask] === 1;
      pick[i] = known && (!bestKnown || wins[i] === 1) ? 1 : 0;
    }
    return choose(pick, [best, next], rows);
  }, args[0]);
}

/** Row i of the result is row i of column pick[i], or null if pick[i] is -1. */
export function choose(
  pick: Int32Array,
  columns: readonly Values[],
  {
    type,
    length,
    constant,
  }: { readonly type: ValueType; readonly length: number; readonly constant: boolean },
): Values {
  const valid = new Uint8Array(length);
  columns.forEach((column, k) => {
    const [own, mask] = [column.valid, maskOf(column)];
    for (let i = 0; i < length; i++) if (pick[i] === k) valid[i] = own === undefined ? 1 : own[i & mask];
  });
  const shape = { type, length, constant, valid: valid.includes(0) ? valid : undefined };
  const forms = new Set(columns.map(({ form }) => form));
  if (forms.has('big')) {
    const out = Array.from({ length }, () => 0n);
    columns.forEach((column, k) => {
      const [values, mask] = [bigsOf(column), maskOf(column)];
      for (let i = 0; i < length; i++) if (pick[i] === k) out[i] = values[i & mask];
    });
    return decimals(out, shape);
  }
  if (forms.has('wide')) {
    const out = type === 'uint64' ? new BigUint64Array(length) : new BigInt64Array(length);
    columns.forEach((column, k) => {
      const [values, mask] = [wideOf(column), maskOf(column)];
      for (let i = 0; i < length; i++) if (pick[i] === k) out[i] = values[i & mask];
    });
    return integers(out, shape);
  }
  if (forms.has('text')) {
    const texts = columns.map((column) => ({ texts: textsOf(column), mask: maskOf(column) }));
    const values = Array.from(pick, (k, i) => (k < 0 ? '' : texts[k].texts[i & texts[k].mask]));
    return { form: 'text', values, ...shape };
  }
  if (!forms.has('number') && !forms.has('bool')) return { form: 'opaque', ...shape };
  const out = new Float64Array(length);
  columns.forEach((column, k) => {
    const [values, mask] = [numbersOf(column), maskOf(column)];
    for (let i = 0; i < length; i++) if (pick[i] === k) out[i] = values[i & mask];
  });
  if (type === 'bool') return { form: 'bool', values: Uint8Array.from(out), ...shape };
  return { form: 'number', values: out, ...shape };
}

const two = alike((type) => type === 'bool', 'bool');
const both = (args: readonly Argument[]) => (args.length === 2 ? two(args) : undefined);
const oneArgument = ([arg, more]: readonly Argument[]): Signature | undefined =>
  more || !arg ? undefined : { args: [arg.type], result: 'bool' };

/** SQL's three-valued logic: `false and null` is false, `true or null` is true. */
export const logic: Functions = {
  and: { takes: 'a and b', sign: both, seesNulls: true, kernel: (args, rows) => join(args, rows, 0) },
  or: { takes: 'a or b', sign: both, seesNulls: true, kernel: (args, rows) => join(args, rows, 1) },
  not: {
    takes: 'not a',
    sign: (args) => (args.length === 1 ? two(args) : undefined),
    kernel: ([a], rows) => boolResult(rows, inverted(bytesOf(a).slice())),
  },
  isNull: {
    takes: 'x is null',
    sign: oneArgument,
    seesNulls: true,
    kernel: ([a], rows) =>
      boolResult(rows, a.valid ? inverted(a.valid.slice()) : new Uint8Array(rows.length)),
  },
  isNotNull: {
    takes: 'x is not null',
    sign: oneArgument,
    seesNulls: true,
    kernel: ([a], rows) => boolResult(rows, a.valid?.slice() ?? new Uint8Array(rows.length).fill(1)),
  },
};

function bytesOf(column: Values): Uint8Array {
  return column.form === 'bool' ? column.values : new Uint8Array(column.length);
}

/** `and` (`decides` = 0) or `or` (`decides` = 1). */
function join([left, right]: readonly Values[], rows: Rows, decides: 0 | 1): Values {
  const [a, b] = [bytesOf(left), bytesOf(right)];
  const [maskA, maskB] = [maskOf(left), maskOf(right)];
  const out = new Uint8Array(rows.length);
  if (decides === 0) for (let i = 0; i < out.length; i++) out[i] = a[i & maskA] & b[i & maskB];
  else for (let i = 0; i < out.length; i++) out[i] = a[i & maskA] | b[i & maskB];
  if (left.valid === undefined && right.valid === undefined) return boolResult(rows, out);
  const valid = new Uint8Array(rows.length);
  for (let i = 0; i < out.length; i++) {
    const knownA = left.valid === undefined ? 1 : left.valid[i & maskA];
    const knownB = right.valid === undefined ? 1 : right.valid[i & maskB];
    const decided = (knownA === 1 && a[i & maskA] === decides) || (knownB === 1 && b[i & maskB] === decides);
    valid[i] = decided ? 1 : knownA & knownB;
    if (decided) out[i] = decides;
  }
  return boolResult(rows, out, valid);
}
