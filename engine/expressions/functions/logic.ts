import { maskOf, type Values } from '../values.ts';
import { inverted } from './compare.ts';
import { alike, boolResult, type Argument, type Functions, type Rows, type Signature } from './function.ts';

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
