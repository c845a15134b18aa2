import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { type IdForm, idForms } from '../engine/keys/find-id.ts';
import { oneOf, spelled } from '../engine/nearest.ts';
import { nearestName } from '../operators/params/nearest-name.ts';
import { checkValue, checkValues, type Params, seedParam } from '../operators/params/param.ts';
import { type ColumnNames, type ColumnRole, usualNames } from '../operators/ratings/rows/column-names.ts';

/** The names of RunOptions. */
export const runOptionNames = ['signal', 'onEvent'] as const;

/**
 * Throws UsageError unless `options` is an object with known names only, and values that `params` allow. `what` names
 * the method that takes them.
 */
export function checkOptions<O extends object>(
  what: string,
  options: O,
  known: readonly (keyof O & string)[],
  example = `{ ${known[0]} }`,
  params: Params = {},
): void {
  requireOptions(what, options, example);
  const names: readonly string[] = [...known, ...Object.keys(params)];
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const advice = spelled(nearestName(name, names), `There are: ${names.join(', ')}`);
    throw new UsageError(`unknown option ${name} of ${what}`, { advice });
  }
  checkRunOptions(what, options);
  checkValues(params, options);
}

/** Throws UsageError unless `options` is an object. */
export function requireOptions(what: string, options: unknown, example = '{ rank: 64 }'): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new UsageError(`${what} takes options such as ${example}, got ${shown(options)}`);
}

/** Throws UsageError unless the signal is an AbortSignal and the listener a function, if they are given. */
export function checkRunOptions(
  what: string,
  options: { readonly signal?: unknown; readonly onEvent?: unknown },
) {
  const { signal, onEvent } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new UsageError(`the option signal of ${what} takes an AbortSignal, got ${shown(signal)}`, {
      advice: 'Pass the signal of an AbortController',
    });
  if (onEvent !== undefined && typeof onEvent !== 'function')
    throw new UsageError(`the option onEvent of ${what} takes a function, got ${shown(onEvent)}`);
}

/** Throws UsageError unless the seed is an unsigned 32-bit integer. */
export function checkSeed(seed: number): void {
  checkValue('seed', { ...seedParam, help: '' }, seed);
}

/** Throws UsageError unless `columns` names columns of a data set. */
export function checkColumnNames(what: string, columns: ColumnNames): void {
  checkOptions(what, columns, Object.keys(usualNames) as ColumnRole[], "{ user: 'userId', item: 'movieId' }");
  const wrong = Object.entries(columns).find(
    ([, name]) => name !== undefined && (typeof name !== 'string' || name === ''),
  );
  if (wrong !== undefined)
    throw new UsageError(`the ${wrong[0]} column must be the name of a column, got ${shown(wrong[1])}`);
}

/** Throws UsageError for an unknown form of ids. */
export function checkIdForm(ids: IdForm | undefined): void {
  if (ids !== undefined) oneOf('ids', ids, idForms);
}
