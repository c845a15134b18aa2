import { DataError } from '../../engine/errors.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { buildUserBlock } from '../../operators/ratings/rating-blocks.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import { type BadRowPolicy } from '../../operators/ratings/rows/bad-rows.ts';
import { weightedBlock } from '../../operators/als/implicit/weighted-ratings.ts';
import { knownRatings } from '../../operators/serving/fold-in/known-ratings.ts';
import type { RowRule } from '../../operators/serving/fold-in/row-rule.ts';
import { fixedItems, type SolvedUsers, solveUsers } from '../../operators/serving/fold-in/solve-users.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import type { Dataset } from '../dataset.ts';
import type { Model } from '../model.ts';
import type { ModelParts } from '../model-parts.ts';
import { unratedAsOnes } from '../training/unrated-as-ones.ts';
import { RatingInput } from '../rating-input.ts';
import type { RunOptions } from '../session.ts';

export interface FoldInOptions extends RunOptions {
  /** λ; by default that of the training, which models of Spark do not tell. */
  readonly regParam?: number;
  readonly onDuplicates?: DuplicatePolicy;
  readonly onBadRows?: BadRowPolicy;
}

/** Users who were folded in, as a model of them alone with the items as they are. */
export interface FoldedUsers {
  readonly model: Model;
  readonly users: number;
  /** Users without a rating of a known item, whom the model does not have. */
  readonly withoutItems: number;
  /** Ratings that were solved from, and those of items that the model does not know. */
  readonly ratings: number;
  readonly coldRatings: number;
}

/** Solves users from their ratings; see Model.foldIn. `make`: a model of parts. */
export async function foldInUsers(
  parts: ModelParts & FactorModel,
  rule: RowRule,
  ratings: Dataset,
  options: FoldInOptions,
  make: (parts: ModelParts) => Model,
): Promise<FoldedUsers> {
  const { onDuplicates, onBadRows, signal, onEvent } = options;
  const input = new RatingInput({ onDuplicates, onBadRows }, parts.columns);
  return Holdings.ofRun(ratings.session.context({ signal, onEvent }), async (ctx) => {
    using _ = ctx.metrics.begin('fold-in');
    const found = await input.found(ratings, ctx);
    const rated = rule.implicit ? await unratedAsOnes(found, input.columnsOf(found).rating, ctx) : found;
    const indexed = await input.index(rated, undefined, ctx);
    const { byUser } = await buildUserBlock(indexed, input.onDuplicates, ctx);
    const known = knownRatings({ users: indexed.users, items: indexed.items, byUser }, parts, rule);
    const phase = startPhase(ctx.events, 'fold-in', 'users', known.block.rows);
    const countAt = (_: number, column: number) => parts.itemCounts?.[known.items[column]] ?? 0;
    const block = rule.implicit
      ? weightedBlock(known.block, rule.implicit.weight, { countAt, keeps: false })
      : known.block;
    const fixed = fixedItems(parts.itemFactors, parts.rank, rule, known.items);
    const solved =
      known.block.rows === 0
        ? { factors: new Float32Array(0), biases: new Float32Array(0) }
        : await solveUsers(block, fixed, rule, ctx);
    phase.end(known.block.rows);
    const rows = foldedRows(solved, parts.rank, rule);
    const left = rows.good.length === known.block.rows ? known.users : takeKeys(known.users, rows.good);
    if (known.block.rows > 0 && rows.good.length === 0)
      throw new DataError('the equations of no user have a finite solution', {
        phase: 'fold-in',
        advice: 'Give a larger regParam',
      });
    const model = make({
      ...parts,
      users: left,
      userFactors: rows.values,
      training: undefined,
      session: ratings.session,
    });
    return {
      model,
      users: keyCount(left),
      withoutItems: known.withoutItems + known.block.rows - rows.good.length,
      ratings: known.block.ratings,
      coldRatings: known.coldRatings,
    };
  });
}

/** Solved rows as the model stores users ([x], or [x, β + μ, 1]); those that are finite. */
function foldedRows(
  { factors, biases: own }: SolvedUsers,
  width: number,
  { rank, biases, mean }: RowRule,
): { readonly values: Float32Array; readonly good: readonly number[] } {
  const count = factors.length / rank;
  const good: number[] = [];
  const values = sharedArray(Float32Array, count * width);
  for (let row = 0; row < count; row++) {
    // A sum of what is not finite is not finite.
    let sum = biases ? own[row] : 0;
    const at = good.length * width;
    for (let k = 0; k < rank; k++) sum += values[at + k] = factors[row * rank + k];
    if (!Number.isFinite(sum)) continue;
    if (biases) {
      values[at + rank] = own[row] + mean;
      values[at + rank + 1] = 1;
    }
    good.push(row);
  }
  return { values: values.subarray(0, good.length * width), good };
}
