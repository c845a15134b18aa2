import { computeDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { type FactorModel, placeForPairs } from '../../serving/factor-model.ts';
import { scorePositions } from '../../serving/predict.ts';

/** Pairs of one task. */
const PAIRS = 1 << 18;

/** x_uᵀθ_v of each entry of the lists; entries are positions in the model. */
export function listedScores(
  model: FactorModel,
  { offsets, indices, rows }: RatingBlock,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const users = new Uint32Array(indices.length);
  for (let user = 0; user < rows; user++) users.fill(user, offsets[user], offsets[user + 1]);
  const scores = new Float32Array(indices.length);
  const phase = startPhase(ctx.events, 'rank', 'candidates', scores.length);
  return Holdings.within(ctx, async (held) => {
    const factors = await placeForPairs(model, held);
    const chunks = async function* () {
      for (let from = 0; from < scores.length; from += PAIRS) yield from;
    };
    const score = async (from: number) => ({
      from,
      values: await scorePositions(
        shared(users, from),
        shared(indices, from),
        { rank: model.rank, factors },
        held,
      ),
    });
    for await (const { from, values } of mapOrdered(
      chunks(),
      2 * computeDevice(ctx.executor).info.parallelism,
      score,
    )) {
      scores.set(values, from);
      phase.progress(from + values.length);
    }
    phase.end(scores.length);
    return scores;
  });
}

function shared(values: Uint32Array, from: number): Uint32Array {
  const part = values.subarray(from, from + PAIRS);
  const copy = sharedArray(Uint32Array, part.length);
  copy.set(part);
  return copy;
}
