import { UsageError } from '../../../engine/errors.ts';
import { shown } from '../../../engine/format.ts';
import { CounterRandom } from '../../../engine/random.ts';

/** Numbers between two bounds, both included. */
export interface NumberRange {
  readonly from: number;
  readonly to: number;
  /** 'log': every order of magnitude is equally likely. Default 'linear'. */
  readonly scale?: 'linear' | 'log';
  /** True for whole numbers. */
  readonly whole?: boolean;
}

/** The possible values of each parameter in a search. */
export type SearchSpace = Readonly<Record<string, readonly unknown[] | NumberRange>>;

/** The parameters of one trial. */
export type TrialParams = Readonly<Record<string, unknown>>;

const NAME = 'the search space';

/** Throws UsageError for a parameter without values and for an empty range. */
export function checkSpace(space: SearchSpace): void {
  if (typeof space !== 'object' || space === null || Array.isArray(space))
    throw new UsageError(
      `${NAME} must be an object such as { rank: [8, 16], regParam: { from: 0.01, to: 0.1, scale: 'log' } }, got ${shown(space)}`,
    );
  if (Object.keys(space).length === 0)
    throw new UsageError(`${NAME} is empty`, { advice: 'Name at least one parameter with its values' });
  for (const [name, values] of Object.entries(space)) {
    if (isList(values)) {
      if (values.length === 0) throw new UsageError(`${NAME} has no value for ${name}`);
      continue;
    }
    checkRange(name, values);
  }
}

function checkRange(name: string, values: NumberRange): void {
  const { from, to, scale = 'linear', whole = false } = (values ?? {}) as NumberRange;
  if (!Number.isFinite(from) || !Number.isFinite(to) || from > to)
    throw new UsageError(
      `${name} in ${NAME} must be an array, or a range such as { from: 0.01, to: 0.1 } whose bounds ascend, got ${shown(values)}`,
    );
  if (scale !== 'linear' && scale !== 'log')
    throw new UsageError(`the scale of ${name} must be linear or log, got ${shown(scale)}`);
  if (scale === 'log' && from <= 0)
    throw new UsageError(`a logarithmic range of ${name} begins above 0, got ${from}`);
  if (whole && !(Number.isInteger(from) && Number.isInteger(to)))
    throw new UsageError(`the bounds of ${name} must be whole numbers, got ${from} and ${to}`);
}

/** Every combination of the values, the last parameter changing fastest. Throws UsageError for a range. */
export function gridOf(space: SearchSpace): TrialParams[] {
  const range = Object.entries(space).find(([, values]) => !isList(values));
  if (range !== undefined)
    throw new UsageError(`a grid takes lists of values, and ${range[0]} is a range`, {
      advice: 'Search at random, or list the values',
    });
  return paramGrid(space as Readonly<Record<string, readonly unknown[]>>);
}

/**
 * Random trials, each parameter drawn independently: a pure function of the seed, so that a longer search
 * starts with the trials of a shorter one. A combination of listed values occurs once; if there are fewer
 * combinations than trials, all of them are used.
 */
export function randomTrials(space: SearchSpace, trials: number, seed: number): TrialParams[] {
  const random = new CounterRandom(seed, STREAM);
  const found = new Map<string, TrialParams>();
  const names = Object.keys(space);
  const most = names.reduce((product, name) => product * sizeOf(space[name]), 1);
  for (let counter = 0; found.size < Math.min(trials, most) && counter < trials * MOST_DRAWS; counter++) {
    const drawn = Object.fromEntries(
      names.map((name, at) => [name, draw(space[name], random.derive(at).uniform(counter))]),
    );
    found.set(JSON.stringify(drawn), found.get(JSON.stringify(drawn)) ?? drawn);
  }
  return [...found.values()];
}

/** Number of the random stream from which trials are drawn. */
const STREAM = 0x7a1a;

/**
 * Draws are repeated while they give combinations that are known already, but at most this often for each
 * trial.
 */
const MOST_DRAWS = 200;

function draw(values: readonly unknown[] | NumberRange, at: number): unknown {
  if (isList(values)) return values[Math.min(values.length - 1, Math.floor(at * values.length))];
  const { from, to, scale = 'linear', whole = false } = values;
  const [low, high] = whole ? [from - 0.5, to + 0.5] : [from, to];
  const value =
    scale === 'log'
      ? Math.exp(
          Math.log(Math.max(low, Number.MIN_VALUE)) + at * Math.log(high / Math.max(low, Number.MIN_VALUE)),
        )
      : low + at * (high - low);
  return whole
    ? Math.min(to, Math.max(from, Math.round(value)))
    : Math.min(to, Math.max(from, Number(value.toPrecision(4))));
}

function sizeOf(values: readonly unknown[] | NumberRange): number {
  if (isList(values)) return values.length;
  return values.from === values.to
    ? 1
    : values.whole
      ? values.to - values.from + 1
      : Number.POSITIVE_INFINITY;
}

function isList(values: unknown): values is readonly unknown[] {
  return Array.isArray(values);
}

/**
 * Every combination of the values of each parameter, the last parameter changing fastest:
 * paramGrid({ rank: [8, 16], regParam: [0.1, 0.2] }) gives (8, 0.1), (8, 0.2), (16, 0.1), (16, 0.2).
 * Throws UsageError for a parameter without values.
 */
export function paramGrid<const V extends Readonly<Record<string, readonly unknown[]>>>(
  values: V,
): { readonly [K in keyof V]: V[K][number] }[] {
  if (typeof values !== 'object' || values === null)
    throw new UsageError(`paramGrid takes lists of values by parameter, got ${shown(values)}`);
  let combinations: object[] = [{}];
  for (const [name, choices] of Object.entries(values)) {
    if (!Array.isArray(choices))
      throw new UsageError(`the grid's values of ${name} are a list such as [8, 16], got ${shown(choices)}`);
    if (choices.length === 0) throw new UsageError(`the grid has no value for ${name}`);
    combinations = combinations.flatMap((combination) =>
      choices.map((choice) => ({ ...combination, [name]: choice })),
    );
  }
  return combinations as { readonly [K in keyof V]: V[K][number] }[];
}
