import { DataError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type BadRowPolicy } from '../../operators/ratings/rows/select-ratings.ts';
import { recencyOfModel } from '../../operators/ratings/measure-recency.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import { type FactorModel, rowsInMemory } from '../../operators/serving/factor-model.ts';
import { gramOfItems, knownRatings, solveUsers, type UserRule } from '../../operators/serving/solve-users.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import type { Dataset } from '../dataset.ts';
import type { ModelParts } from '../model-parts.ts';
import { RatingInput } from '../rating-input.ts';
import type { RunOptions } from '../run-session.ts';
import { unratedAsOnes } from '../training/unrated-as-ones.ts';

export interface FoldInOptions extends RunOptions {
  /** λ; default: λ of the training, which models of Spark do not contain. */
  readonly regParam?: number;
  readonly onDuplicates?: DuplicatePolicy;
  readonly onBadRows?: BadRowPolicy;
}

/** What attributes predict of users, if the model has attributes of users. */
export type PriorsOf = (users: KeyColumn) => Float32Array | undefined;

/** Users and ratings of a fold-in. */
export interface FoldedCounts {
  readonly users: number;
  /** Users who are left out of the model, since no item that they rated is known. */
  readonly withoutItems: number;
  /** Ratings used for solving, and ratings of unknown items. */
  readonly ratings: number;
  readonly coldRatings: number;
}

/** Solves users from their ratings; see Model.foldIn. `make` creates a model from parts. */
export async function foldInUsers<Made>(
  parts: ModelParts & FactorModel,
  given: UserRule,
  ratings: Dataset,
  { priorsOf, ...options }: FoldInOptions & { readonly priorsOf: PriorsOf },
  make: (parts: ModelParts) => Made,
): Promise<FoldedCounts & { readonly model: Made }> {
  const { onDuplicates, onBadRows, signal, onEvent } = options;
  const recency = recencyOfModel(parts.metadata ?? {});
  const asked = new RatingInput({ onDuplicates, onBadRows }, parts.columns, recency);
  return Holdings.ofRun(ratings.session.context({ signal, onEvent }), async (ctx) => {
    using _ = ctx.metrics.begin('fold-in');
    const found = await asked.found(ratings, ctx);
    const rated = given.implicit ? await unratedAsOnes(found, asked.columnsOf(found).rating, ctx) : found;
    const input = await asked.weighed(rated, ctx);
    // Ratings with times are read as weights already.
    const { weight, ...equations } = given;
    const rule: UserRule = input.weighing || weight === undefined ? equations : given;
    const indexed = await input.index(rated, undefined, ctx);
    const byUser = await sortByUser(indexed, input.onDuplicates, ctx);
    const known = knownRatings({ users: indexed.users, items: indexed.items, byUser }, parts, rule);
    const { rows } = known.block;
    const phase = startPhase(ctx.events, 'fold-in', 'users', rows);
    const { unobserved = 0 } = rule.implicit ?? {};
    const gram = rule.implicit && (() => gramOfItems(parts, { unobserved, counts: parts.itemCounts }, ctx));
    const fixed = { model: rowsInMemory(parts), itemCounts: parts.itemCounts, rule, gram };
    const solved = await solveUsers({ ...known, priors: priorsOf(known.users) }, fixed, ctx);
    phase.end(rows);
    const left = solved.rows.length === rows ? known.users : takeKeys(known.users, solved.rows);
    if (rows > 0 && solved.rows.length === 0)
      throw new DataError('the equations of no user have a finite solution', {
        phase: 'fold-in',
        advice: 'Give a larger regParam',
      });
    const model = make({
      ...parts,
      users: left,
      userFactors: solved.values,
      training: undefined,
      session: ratings.session,
    });
    return {
      model,
      users: keyCount(left),
      withoutItems: known.withoutItems + rows - solved.rows.length,
      ratings: known.block.ratings,
      coldRatings: known.coldRatings,
    };
  });
}
