import { UsageError } from '../../../engine/errors.ts';
import { shown } from '../../../engine/format.ts';
import { type ValueWeight, weightOf } from '../../../engine/numbers/value-index.ts';
import { timeIn } from './time-in.ts';

/** How the weights of implicit ratings halve with their age, as parameters say it. */
export interface Recency {
  /** In milliseconds. */
  readonly halfLife: number;
  /** The time at which a rating has its whole weight, in milliseconds since 1970. Default: the latest rating's. */
  readonly now?: number;
}

/**
 * Replaces ratings by weights that halve with age, while they are read: w(r) 2^(-age / halfLife). Times are
 * in the unit of the column of times. A rating after `now` has the age 0.
 */
export type Weighing = {
  readonly weight: ValueWeight;
  readonly halfLife: number;
  readonly now: number;
};

/** Milliseconds of each unit of a half-life; a year is 365.25 days. */
const units: Readonly<Record<string, number>> = {
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365.25 * 86_400_000,
};

/** How a half-life is written. */
export const DURATION = 'a number above 0 with a unit (s, min, h, d, w or y), such as 30d, or none';

/** Reads a half-life such as "30d" or "1.5y"; undefined for "none". Throws UsageError for another text. */
function durationIn(text: string): number | undefined {
  if (text === 'none') return undefined;
  const [, count = '', unit = ''] = /^(\d+\.?\d*|\.\d+) ?([a-z]+)$/.exec(text) ?? [];
  const duration = Number(count) * (units[unit] ?? Number.NaN);
  if (duration > 0 && Number.isFinite(duration)) return duration;
  throw new UsageError(`halfLife must be ${DURATION}, got ${shown(text)}`);
}

/** The parameters `halfLife` and `now`, in milliseconds. Throws UsageError for a text that is none. */
export function recencyOf({
  halfLife: text,
  now: time,
}: {
  readonly halfLife?: string;
  readonly now?: string;
}): Recency | undefined {
  const now = time === undefined ? undefined : timeIn(time);
  if (time !== undefined && now === undefined)
    throw new UsageError(`now must be a time such as 2024-05-31 or 2024-05-31T12:00:00Z, got ${shown(time)}`);
  const halfLife = text === undefined ? undefined : durationIn(text);
  return halfLife === undefined ? undefined : { halfLife, ...(now !== undefined && { now }) };
}

/** The least factor by age: no weight becomes 0 in float32, which would leave the rating out. */
const LEAST = 2 ** -100;

/** The factor by which a rating's weight is smaller at an age: 1, 1/2 and 1/4 after 0, 1 and 2 half-lives. */
export function decayOf({ halfLife, now }: Pick<Weighing, 'halfLife' | 'now'>, time: number): number {
  return time >= now ? 1 : Math.max(LEAST, 2 ** ((time - now) / halfLife));
}

/** The weights of ratings at these times, in new memory. */
export function weighedByAge(ratings: Float32Array, times: Float64Array, by: Weighing): Float32Array {
  return ratings.map((rating, row) => weightOf(by.weight, rating, 1) * decayOf(by, times[row]));
}
