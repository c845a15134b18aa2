import { DataError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { type KeyColumn, keyCount, takeKeys, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { givenRows } from '../../operators/attributes/cold-rows.ts';
import { swappedRatings } from '../../operators/ratings/ids/number-ids.ts';
import { type BadRowPolicy } from '../../operators/ratings/rows/select-ratings.ts';
import { recencyOfModel } from '../../operators/ratings/measure-recency.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import {
  type FactorModel,
  lookupOf,
  rowsInMemory,
  swappedModel,
} from '../../operators/serving/factor-model.ts';
import { gramOfItems, knownRatings, solveUsers, type UserRule } from '../../operators/serving/solve-users.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import type { Dataset } from '../dataset.ts';
import type { ModelParts } from '../model-parts.ts';
import { RatingInput } from '../rating-input.ts';
import type { RunOptions } from '../run-session.ts';
import { unratedAsOnes } from '../training/unrated-as-ones.ts';
import { extendedParts } from './cold-rows.ts';
import type { ModelPriors } from './user-priors.ts';

export interface FoldInOptions extends RunOptions {
  /** λ; default: λ of the training, which models of Spark do not contain. */
  readonly regParam?: number;
  readonly onDuplicates?: DuplicatePolicy;
  readonly onBadRows?: BadRowPolicy;
}

/** Users and ratings of a fold-in. */
export interface FoldedCounts {
  readonly users: number;
  /** Users who are left out of the model, since no item that they rated is known. */
  readonly withoutItems: number;
  /** Ratings used for solving, and ratings of unknown items. */
  readonly ratings: number;
  readonly coldRatings: number;
}

/** Items and ratings of a fold-in of items. */
export interface FoldedItemCounts {
  /** Items that were solved. */
  readonly items: number;
  /** Items of the ratings that have ratings in the model already, and keep their factors. */
  readonly kept: number;
  /** Items that are left out, since no user who rated them is known. */
  readonly withoutUsers: number;
  /** Ratings used for solving, and ratings of unknown users. */
  readonly ratings: number;
  readonly coldRatings: number;
}

/** The rule of the side, and what attributes predict of its rows, if it has attributes. */
export interface Folding {
  readonly rule: UserRule;
  readonly priors: Pick<ModelPriors, 'ofUsers'> | undefined;
}

/** Solves users from their ratings; see Model.foldIn. `make` creates a model from parts. */
export async function foldInUsers<Made>(
  parts: ModelParts & FactorModel,
  folding: Folding,
  ratings: Dataset,
  options: FoldInOptions,
  make: (parts: ModelParts) => Made,
): Promise<FoldedCounts & { readonly model: Made }> {
  const { ids, known, values } = await solveSide(parts, folding, ratings, options);
  const { session } = ratings;
  const model = make({ ...parts, users: ids, userFactors: values, training: undefined, session });
  return {
    model,
    users: keyCount(ids),
    withoutItems: known.withoutItems + known.block.rows - keyCount(ids),
    ratings: known.block.ratings,
    coldRatings: known.coldRatings,
  };
}

/** Solves items from their ratings; see Model.foldInItems. */
export async function foldInItems<Made>(
  parts: ModelParts & FactorModel,
  folding: Folding,
  ratings: Dataset,
  options: FoldInOptions,
  make: (parts: ModelParts) => Made,
): Promise<FoldedItemCounts & { readonly model: Made }> {
  const { ids, known, values, rows } = await solveSide(parts, folding, ratings, options);
  const { rows: given, coefficients } = givenRows(ids, values, parts.rank);
  const { model, counts } = extendedParts(parts, 'item', given, { coefficients });
  const { offsets } = known.block;
  lookupOf(model.items)
    .positionsOf(ids)
    .forEach((position, at) => {
      if (counts) counts[position] = offsets[rows[at] + 1] - offsets[rows[at]];
    });
  return {
    model: make(model),
    items: keyCount(ids),
    kept: known.left,
    withoutUsers: known.withoutItems + known.block.rows - keyCount(ids),
    ratings: known.block.ratings,
    coldRatings: known.coldRatings,
  };
}

/**
 * Solves the rows of a side from their ratings, with the other side fixed: users, or items without ratings in
 * the model. With items, users and items are swapped throughout.
 */
async function solveSide(
  parts: ModelParts & FactorModel,
  { rule: given, priors }: Folding,
  ratings: Dataset,
  { onDuplicates, onBadRows, signal, onEvent }: FoldInOptions,
) {
  const side = given.solves ?? 'users';
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
    const read = await input.index(rated, undefined, ctx);
    const indexed = side === 'items' ? swappedRatings(read) : read;
    const model = side === 'items' ? swappedModel(parts) : parts;
    const byUser = await sortByUser(indexed, input.onDuplicates, ctx);
    const isLeft = side === 'items' ? ratedIn(parts, indexed.users) : undefined;
    const known = knownRatings({ users: indexed.users, items: indexed.items, byUser, isLeft }, model, rule);
    const { rows } = known.block;
    const phase = startPhase(ctx.events, 'fold-in', side, rows);
    const { unobserved = 0 } = rule.implicit ?? {};
    const counts = side === 'items' ? parts.userCounts : parts.itemCounts;
    const gram = rule.implicit && (() => gramOfItems(model, { unobserved, counts }, ctx));
    const fixed = { model: rowsInMemory(model), itemCounts: counts, rule, gram };
    const solved = await solveUsers({ ...known, priors: priors?.ofUsers(known.users) }, fixed, ctx);
    phase.end(rows);
    if (rows > 0 && solved.rows.length === 0)
      throw new DataError(`the equations of no ${side.slice(0, -1)} have a finite solution`, {
        phase: 'fold-in',
        advice: 'Give a larger regParam',
      });
    const ids = solved.rows.length === rows ? known.users : takeKeys(known.users, solved.rows);
    return { ids, known, ...solved };
  });
}

/** For each id of a column: true if the model has ratings of the item, or does not know whether it has. */
function ratedIn({ items, itemCounts }: Pick<ModelParts, 'items' | 'itemCounts'>, ids: KeyColumn) {
  const lookup = lookupOf(items);
  lookup.requireComparable(ids.type, 'item');
  const positions = lookup.positionsOf(ids);
  return (row: number): boolean => positions[row] !== UNKNOWN_KEY && itemCounts?.[positions[row]] !== 0;
}
