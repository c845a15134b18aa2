import { DataError } from '../../engine/errors.ts';
import { counted, formatCount } from '../../engine/format.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import { bitsOf, type ValueWeight, type WeightForm } from '../../engine/numbers/value-index.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import { type Distinct, readWeight, weightOfDistinct } from '../als/implicit/rating-weight.ts';
import { columnOf } from '../dataflow/row-operator.ts';
import { requireTimes, timeNumbers, TimeSizes, unitsPerMillisecond } from '../splits/time-split.ts';
import { fieldOf } from './rows/columns.ts';
import { type Recency, recencyOf, type Weighing } from './rows/recency.ts';
import { ratingsOf } from './rows/select-ratings.ts';

/** A half-life, and the weights that halve: their form, or for later ratings of a model its formula. */
export type WantedRecency = Recency &
  ({ readonly form: Exclude<WeightForm, 'bm25'> } | { readonly weight: ValueWeight });

/** The half-life of a model's training, for later ratings; undefined for a model without one. */
export function recencyOfModel({ params, ratingWeight }: JsonObject): WantedRecency | undefined {
  const { halfLife, now } = (params ?? {}) as JsonObject;
  if (typeof halfLife !== 'string' || typeof now !== 'string') return undefined;
  const recency = recencyOf({ halfLife, now });
  return recency && { ...recency, weight: readWeight(ratingWeight) };
}

/** What the weights by age depend on: the latest time, the unit of the times, and the sizes of the ratings. */
export interface RecencyFacts {
  /** The first and the latest time in the column's unit; infinite without any. */
  readonly earliest: number;
  readonly latest: number;
  /** Units of the column in a millisecond; undefined if the times suggest no unit, or several. */
  readonly units: number | undefined;
  readonly sizes: TimeSizes;
  /** |r| and its number of rows, for ratings other than 0, ascending; of |r| the first 9 binary digits. */
  readonly amounts: Distinct;
  /** Number of rows after the given `now`. */
  readonly later: number;
}

/** A float32 without its sign and its last 15 bits. */
const DROPPED = 15;
const BINS = 2 ** (31 - DROPPED);

/**
 * Reads the columns of times and ratings for weights by age, or of times alone. Rows without a time or a rating
 * are left out here, and handled where the ratings are read.
 */
export function measureRecency(
  columns: { readonly rating?: string; readonly timestamp: string },
  now?: number,
): Sink<RecencyFacts> {
  const { rating, timestamp } = columns;
  const names = rating === undefined ? [timestamp] : [rating, timestamp];
  return {
    name: 'measure-recency',
    needs: { numbers: names, takesFaults: true },
    describe: () => columns,
    requiredColumns: () => names,
    async consume(input) {
      requireTimes(input.schema, timestamp);
      const sizes = new TimeSizes(input.schema, timestamp);
      const known = unitsPerMillisecond(fieldOf(input.schema, timestamp).type);
      const counts = new Float64Array(BINS);
      let [earliest, latest] = [Infinity, -Infinity];
      let later = 0;
      for await (const batch of input) {
        const times = columnOf(batch, timestamp);
        const ratings = rating === undefined ? undefined : columnOf(batch, rating);
        const at = timeNumbers(times).slice(0, batch.numRows);
        if (hasNulls(times)) at.forEach((_, row) => isNullAt(times, row) && (at[row] = Number.NaN));
        sizes.add(at);
        const bits = ratings && bitsOf(ratingsOf(ratings, () => {}).slice(0, batch.numRows));
        const units = known ?? sizes.perMillisecond;
        const end = now === undefined || units === undefined ? Infinity : now * units;
        for (let row = 0; row < at.length; row++) {
          if (!Number.isFinite(at[row])) continue;
          if (ratings && hasNulls(ratings) && isNullAt(ratings, row)) continue;
          earliest = Math.min(earliest, at[row]);
          latest = Math.max(latest, at[row]);
          if (at[row] > end) later++;
          if (bits) counts[(bits[row] & 0x7fff_ffff) >>> DROPPED]++;
        }
      }
      const units = known ?? sizes.perMillisecond;
      return { earliest, latest, units, sizes, amounts: amountsOf(counts), later };
    },
  };
}

/** The sizes with their counts: finite ones other than 0. */
function amountsOf(counts: Float64Array): Distinct {
  const sizes = new Float32Array(Int32Array.from(counts, (_, bin) => bin << DROPPED).buffer);
  return Array.from(counts, (count, bin) => [sizes[bin], count] as const).filter(
    ([size, count]) => count > 0 && size > 0 && Number.isFinite(size),
  );
}

/**
 * The weights by age of a training set, whose ratings give the constants of the formula. With the formula of a
 * model they are for later ratings, and `now` is the model's or the latest rating's. Throws DataError if the
 * unit of the times is unknown; warns of ratings after the `now` of a training.
 */
export function weighingOf(
  { latest, units, sizes, amounts, later }: RecencyFacts,
  { halfLife, now, ...by }: WantedRecency,
  column: string,
  ctx: Pick<ExecutionContext, 'events'>,
): Weighing {
  sizes.report(ctx);
  if (units === undefined)
    throw new DataError(`the times are numbers of no known unit, in which halfLife could be counted`, {
      phase: 'read',
      column,
      advice: 'Give timestamps or dates, or times in seconds or milliseconds since 1970 throughout',
    });
  const own = (now ?? -Infinity) * units;
  if ('weight' in by) return { weight: by.weight, halfLife: halfLife * units, now: Math.max(own, latest) };
  if (later > 0)
    ctx.events({
      type: 'warning',
      code: 'after-now',
      text:
        `${counted(later, 'rating')} of ${column} ${later === 1 ? 'is' : 'are'} later than now, up to ` +
        `${isoOf(latest / units)}: they count as ratings of now. Check now, or leave it out`,
    });
  const end = now === undefined ? latest : own;
  return { weight: weightOfDistinct(by.form, amounts), halfLife: halfLife * units, now: end };
}

/** A time in milliseconds as ISO text, or as a number if it is beyond the calendar. */
export function isoOf(milliseconds: number): string {
  const time = new Date(milliseconds);
  return Number.isNaN(time.getTime()) ? formatCount(milliseconds) : time.toISOString();
}
