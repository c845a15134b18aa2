import { nullData } from '../../stream/join-data.ts';
import type { ValueType } from '../types.ts';
import { nulls, type Values, validOfAll, gather } from '../values.ts';
import { arithmetics } from './arithmetic.ts';
import { comparisons } from './compare.ts';
import { conditionals, logic } from './conditional.ts';
import { dates } from './dates.ts';
import type { Functions, FunctionSpec, Signature } from './function.ts';
import { lists, takeValues } from './lists.ts';
import { matches } from './matches.ts';
import { texts } from './text.ts';

/** All functions and operators by the name that calls use. */
export const functions: Functions = {
  ...comparisons,
  ...logic,
  ...arithmetics,
  ...conditionals,
  ...texts,
  ...matches,
  ...dates,
  ...lists,
};

/** The values of a call over `length` rows; one row if all arguments are constant. */
export function apply(
  { kernel, seesNulls, mayFail }: FunctionSpec,
  { type, arrow }: Pick<Signature, 'arrow'> & { readonly type: ValueType },
  args: readonly Values[],
  given: { readonly length: number; readonly fail: (row: number, message: string) => void },
): Values {
  const constant = args.every((arg) => arg.constant);
  const length = constant ? 1 : given.length;
  const rows = { length, type, constant, fail: given.fail };
  if (seesNulls) return kernel(args, rows);
  const isNull = (arg: Values) =>
    (arg.form === 'opaque' && arg.data === undefined) || (arg.constant && arg.valid?.[0] === 0);
  if (args.some(isNull)) {
    const data = arrow && nullData(arrow, length);
    return { ...nulls(type, length, constant), ...(data && { data }) };
  }
  const entries = mayFail ? undefined : ofDictionary(args, length);
  if (entries === undefined) return kernel(args, { ...rows, valid: validOfAll(args, length) });
  const { codes, valid } = entries;
  const values = kernel(entries.args, { ...rows, length: entries.length, valid: undefined });
  if (values.form === 'opaque' && values.data !== undefined)
    return takeValues(values.data, { ...rows, valid }, (i) => codes[i]);
  if (values.valid === undefined) return gather(values, codes, valid);
  const both = codes.map((code, i) => (values.valid?.[code] ?? 1) & (valid?.[i] ?? 1));
  return gather(values, codes, Uint8Array.from(both));
}

/**
 * If the only argument that is not constant is a dictionary column, returns arguments with the dictionary's
 * entries in its place. The function is then computed once for each entry, not for each row.
 */
function ofDictionary(args: readonly Values[], rows: number) {
  const columns = args.filter((arg) => !arg.constant);
  const [column] = columns;
  if (columns.length !== 1 || column.form !== 'text' || column.codes === undefined) return undefined;
  const { codes, values, valid } = column;
  if (values.length >= rows) return undefined;
  const dictionary: Values = { ...column, length: values.length, codes: undefined, valid: undefined };
  return {
    args: args.map((arg) => (arg === column ? dictionary : arg)),
    codes,
    valid,
    length: values.length,
  };
}
