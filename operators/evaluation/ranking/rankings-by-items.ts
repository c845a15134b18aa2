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
import { addTo, NO_ITEM } from './list-counts.ts';
import { listedRankings } from './listed-rankings.ts';
import type { Rankings } from './rankings.ts';

const STAGE = 'rank-by-items';

/**
 * Rankings for each user by the sum of weights from the items that the user has seen. `most`: the longest
 * list that is counted; 0 if none is.
 */
export async function rankingsByItems(
  weights: ItemWeights,
  { model, positives, seen, lists }: BaselinePairs,
  most: number,
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
  const ranges = balancedRanges(listed.offsets, Math.max(1, Math.min(256, Math.ceil(listed.ratings / 64))));
  const steps = new StepList(contracts);
  const top = lists ? 0 : Math.min(items, most);
  ranges.forEach(({ from, to }, partition) => {
    const ranked: PartitionRef = { name: `${set}/ranked`, partition, version: 0 };
    const task = steps.task(STAGE, place, {
      kernel: 'rank-by-items',
      inputs: { history, listed: entries, ...weights },
      outputs: { ranked },
      params: { from, to, items, top },
    });
    steps.handOut(STAGE, ranked, place, task);
    steps.free(STAGE, place, [ranked]);
  });
  const { handed } = await runSteps(steps.steps, ctx, {
    onProgress: (done) => phase.progress(ranges[done - 1]?.to ?? 0),
  });
  phase.end(listed.rows);
  const parts = handed.map(({ columns }) => columns as unknown as RankedPart);
  if (lists === undefined) return rankingsOfParts(parts, { items, top });
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
  readonly top: Uint32Array;
}

/** The rankings in the outputs of tasks for consecutive ranges of users; `top`: items of each list. */
function rankingsOfParts(
  parts: readonly RankedPart[],
  { items, top }: { readonly items: number; readonly top: number },
): Rankings {
  return {
    places: async () =>
      concatenate(
        Uint32Array,
        parts.map((part) => part.places),
      ),
    lists: async (ks) => {
      const counts = ks.map(() => new Uint32Array(items));
      for (const part of parts)
        part.top.forEach((item, at) => {
          if (item !== NO_ITEM) addTo(counts, ks, item, at % top);
        });
      return counts;
    },
  };
}
