import { setImmediate as eventLoopTurn } from 'node:timers/promises';
import { iterableSource } from '../../connectors/iterable-source.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import type { Source } from '../../engine/stream/operator.ts';
import type { AlsParams } from '../../operators/als/als-params.ts';
import { profileOfSorted, type SideTunings, tuneKernels } from '../../operators/als/kernel-choices.ts';
import { sortedRatingFacts } from '../../operators/evaluation/rating-facts.ts';
import { sortRatings } from '../../operators/ratings/sort-ratings.ts';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { ratingSchema } from '../../synthetic/ratings/rating-batch.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { buildRatingTables } from '../../synthetic/ratings/rating-tables.ts';
import type { Dataset } from '../dataset.ts';
import { RatingInput, type RatingOptions } from '../rating-input.ts';
import type { RunOptions } from '../run-session.ts';

export interface RatingsTuning {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  /** In the order of the parameters. */
  readonly tunings: readonly SideTunings[];
}

/**
 * Times all kernels of ALS's half-iterations on these ratings, once for each set of parameters; see
 * tuneKernels.
 */
export async function tuneRatings(
  ratings: Dataset,
  wanted: readonly AlsParams[],
  columns: RatingOptions,
  options: RunOptions,
): Promise<RatingsTuning> {
  return Holdings.ofRun(ratings.session.context(options), async (ctx) => {
    const input = new RatingInput(columns);
    const indexed = await input.index(await input.found(ratings, ctx), undefined, ctx);
    const { users, items } = indexed;
    const blocks = await sortRatings(indexed, { duplicates: 'keep' }, ctx);
    const { least, most } = await sortedRatingFacts(blocks, ctx);
    const profile = profileOfSorted(blocks, Math.max(Math.abs(least), Math.abs(most)));
    const tunings: SideTunings[] = [];
    for (const params of wanted) tunings.push(await tuneKernels(blocks, profile, params, 'thorough', ctx));
    return { users: keyCount(users), items: keyCount(items), ratings: blocks.byUser.ratings, tunings };
  });
}

/** Generated ratings in the shape of a preset, with `scale` times its number of ratings. */
export function generatedRatings(preset: string, scale: number): Source {
  const tables = buildRatingTables(scalePreset(findPreset(preset), scale), 0);
  async function* batches() {
    for (const { batch } of generateRatings(tables, { parts: ['train'] })) {
      yield batch;
      // Generation never waits, so a signal could not fire without this turn of the event loop.
      await eventLoopTurn();
    }
  }
  return iterableSource({ [Symbol.asyncIterator]: batches }, ratingSchema, { replayable: true });
}
