import { concatenate } from '../../../engine/numbers/concatenate.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { withoutValues } from '../../ratings/rating-block.ts';
import { balancedRanges } from '../../ratings/row-ranges.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { BaselinePairs } from './drawn-pairs.ts';
import type { ItemWeights } from './item-weights.ts';
import { noLists } from './list-counts.ts';
import { listedRankings } from './listed-rankings.ts';
import type { Rankings } from './rankings.ts';

const STAGE = 'rank-by-items';

/** Most tasks that count lists, each of which returns two numbers for every item and k. */
const MOST_COUNTS = 32;

/**
 * Rankings for each user by the sum of weights from the items that the user has seen. `ks`: the lengths of
 * lists to count, ascending.
 */
export async function rankingsByItems(
  weights: ItemWeights,
  { model, positives, seen, lists }: BaselinePairs,
  ks: readonly number[],
  ctx: ExecutionContext,
): Promise<Rankings> {
  const items = keyCount(model.items);
  const listed = lists ?? positives;
  if (seen === undefined) throw new Error('rankings by items need the items that users have seen');
  const { place } = hostDevice(ctx.executor).info;
  const set = dataSetName(STAGE);
  const [history, entries] = ['history', 'listed'].map((name): PartitionRef => ({
    name: `${set}/${name}`,
    partition: 0,
    version: 0,
  }));
  await giveTo(ctx, place, [
    [history, withoutValues(seen)],
    [entries, withoutValues(listed)],
  ]);
  const phase = startPhase(ctx.events, 'rank', 'users', listed.rows);
  const counted = lists ? [] : ks;
  const most = counted.length > 0 ? MOST_COUNTS : 256;
  const ranges = balancedRanges(listed.offsets, Math.max(1, Math.min(most, Math.ceil(listed.ratings / 64))));
  const steps = new StepList(contracts);
  ranges.forEach(({ from, to }, partition) => {
    const ranked: PartitionRef = { name: `${set}/ranked`, partition, version: 0 };
    const task = steps.task(STAGE, place, {
      kernel: 'rank-by-items',
      inputs: { history, listed: entries, ...weights },
      outputs: { ranked },
      params: { from, to, items, ks: counted },
    });
    steps.handOut(STAGE, ranked, place, task);
    steps.free(STAGE, place, [ranked]);
  });
  const { handed } = await runSteps(steps.steps, ctx, {
    onProgress: (done) => phase.progress(ranges[done - 1]?.to ?? 0),
  });
  phase.end(listed.rows);
  const parts = handed.map(({ columns }) => columns as unknown as RankedPart);
  if (lists === undefined) return rankingsOfParts(parts, items, ks);
  const scores = concatenate(
    Float32Array,
    parts.map((part) => part.scores),
  );
  return listedRankings(scores, { lists, positives, items });
}

/** The output of `rank-by-items` for a range of users. */
interface RankedPart {
  readonly scores: Float32Array;
  readonly places: Uint32Array;
  readonly lists: Float64Array;
  readonly unlisted: Float64Array;
}

/** The rankings in the outputs of tasks for consecutive ranges of users. */
function rankingsOfParts(parts: readonly RankedPart[], items: number, ks: readonly number[]): Rankings {
  return {
    places: async () =>
      concatenate(
        Uint32Array,
        parts.map((part) => part.places),
      ),
    lists: async (wanted) => {
      const counts = noLists(items, wanted);
      wanted.forEach((k, i) => {
        const first = ks.indexOf(k) * items;
        for (const part of parts)
          for (let item = 0; item < items; item++) {
            counts[i].lists[item] += part.lists[first + item];
            counts[i].unlisted[item] *= part.unlisted[first + item];
          }
      });
      return counts;
    },
  };
}
