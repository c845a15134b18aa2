import { DataError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import { measureRecency } from '../../operators/ratings/measure-recency.ts';
import { isNamedLike } from '../../operators/ratings/rows/column-names.ts';
import type { Dataset } from '../dataset.ts';
import { isReplayable } from '../run-rows.ts';

const DAY = 86_400_000;

/**
 * A half-life to begin with where popularity ranks held-out ratings better: a sixteenth of the time over which
 * the ratings were made. Undefined unless all held-out ratings are at least as late as the last rating of the
 * training, or if one of the two has no column of times.
 */
export async function halfLifeToTry(
  sets: { readonly train: Dataset; readonly test: Dataset },
  ctx: ExecutionContext,
): Promise<string | undefined> {
  try {
    const [train, test] = [await spanOf(sets.train, ctx), await spanOf(sets.test, ctx)];
    if (train === undefined || test === undefined || test.from < train.to) return undefined;
    const part = (train.to - train.from) / 16;
    if (part < DAY / 24) return undefined;
    return part < 2 * DAY ? `${Math.round((24 * part) / DAY)}h` : `${Number((part / DAY).toPrecision(2))}d`;
  } catch (error) {
    // Times that cannot be read give no advice, and end no evaluation.
    if (error instanceof DataError) return undefined;
    throw error;
  }
}

/** First and last time of a data set in milliseconds; undefined without a known column of times. */
async function spanOf(
  dataset: Dataset,
  ctx: ExecutionContext,
): Promise<{ readonly from: number; readonly to: number } | undefined> {
  if (!isReplayable(dataset)) return undefined;
  const { fields } = await dataset.schema({ signal: ctx.signal });
  const named = fields.map(({ name }) => name).filter((name) => isNamedLike(name, 'timestamp'));
  const timestamp = dataset.columns.timestamp ?? (named.length === 1 ? named[0] : undefined);
  if (timestamp === undefined) return undefined;
  const { earliest, latest, units } = await runInto(dataset.plan, measureRecency({ timestamp }), ctx);
  return units === undefined ? undefined : { from: earliest / units, to: latest / units };
}
