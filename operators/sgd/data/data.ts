import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { DampedMeans } from '../../evaluation/baselines.ts';
import { type BlockMeans, type RatingFacts, rowFacts } from '../../evaluation/rating-facts.ts';
import type { IndexedRatings } from '../../ratings/ids/index-ids.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { sortByUser, sortRatings } from '../../ratings/sort-ratings.ts';
import { type Ratings, ratingsOf } from '../../ratings/ratings.ts';
import { type Labels, labelsOf, relabel } from '../../ratings/ids/relabel.ts';
import { offsetsOf } from '../../ratings/row-ranges.ts';
import { sidesOf } from '../schedules/schedule.ts';
import { type RatingScale, ratingScale, standardize } from './standardize.ts';
import type { DuplicatePolicy } from '../../tasks/tasks.ts';

/** One side of R. Its rows are renumbered at random; the new numbers are called labels. */
export interface SgdSide {
  readonly name: 'users' | 'items';
  /** External ids, in the order of labels. */
  readonly ids: KeyColumn;
  readonly labels: Labels;
}

/** Ratings as SGD uses them: renumbered by labels, scaled, and sorted by row. */
export interface SgdData {
  readonly rows: SgdSide;
  readonly columns: SgdSide;
  /** One block, or one for each band of rows if there are more ratings than a block can hold. */
  readonly ratings: Ratings;
  /** For each column, the number of ratings of earlier columns; columns + 1 numbers. */
  readonly columnOffsets: Float64Array;
  readonly scale: RatingScale;
  /** Σ r² of the scaled ratings: the squared error if all factors are 0. */
  readonly squares: number;
  /** Number of ratings that repeat the pair of an earlier one. */
  readonly duplicates: number;
}

export interface LoadedSgdData extends SgdData {
  /** Statistics of the ratings before scaling. */
  readonly facts: RatingFacts;
}

export interface SgdDataOptions {
  readonly duplicates: DuplicatePolicy;
  readonly seed: number;
  readonly biases: boolean;
  /** Mean μ of the model from which training continues. */
  readonly mean?: number;
  /** Lower bound of σ; see Continuation. */
  readonly leastDeviation?: number;
  /** Damped means of the model from which training continues, by position; NaN for new users and items. */
  readonly means?: DampedMeans | undefined;
  /** Number of bands of rows, for more ratings than fit into a block. */
  readonly bands?: number | undefined;
}

/** Renumbers, sorts and scales ratings whose ids are numbered. Frees the memory of their chunks. */
export async function loadSgdData(
  indexed: IndexedRatings,
  options: SgdDataOptions,
  ctx: ExecutionContext,
): Promise<LoadedSgdData> {
  const { seed, biases } = options;
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const labels = { users: labelsOf(indexed.users, seed, 0), items: labelsOf(indexed.items, seed, 1) };
  // The side with more rows becomes the rows of R.
  const { rows } = sidesOf({ users: keyCount(indexed.users), items: keyCount(indexed.items) });
  const swapped = rows === 'items';
  const relabelled = await relabel(indexed, labels.users, labels.items, swapped, ctx);
  const { byUser: ratings, duplicates } = await sortRatings(
    relabelled,
    {
      duplicates: options.duplicates,
      sides: 'users',
      cut: options.bands === undefined ? undefined : { users: options.bands, items: 0, inBlocks: false },
    },
    ctx,
  );
  const earlier = options.means && blockMeans(options.means, labels, rows);
  const facts = await rowFacts(ratings, relabelled.itemCounts.length, rows, earlier, ctx);
  const scale = await ratingScale(ratings, biases, options, ctx);
  const squares = await standardize(ratings, scale, ctx);
  const side = (name: SgdSide['name'], ids: KeyColumn): SgdSide => ({ name, ids, labels: labels[name] });
  phase.end(indexed.rows);
  return {
    rows: side(rows, relabelled.users),
    columns: side(swapped ? 'users' : 'items', relabelled.items),
    ratings,
    columnOffsets: offsetsOf(facts.columnCounts),
    scale,
    facts,
    squares,
    duplicates,
  };
}

/**
 * Renumbers, sorts and scales the pairs of a validation set like the training data; pairs with an unknown
 * user or item are already removed. `inspect` is called with them before they are scaled. Frees the memory of
 * the chunks.
 */
export async function loadSgdTest(
  indexed: IndexedRatings,
  { rows, columns, scale }: SgdData,
  ctx: ExecutionContext,
  inspect: (block: RatingBlock) => Promise<void> = async () => {},
): Promise<RatingBlock> {
  const [users, items] = rows.name === 'users' ? [rows, columns] : [columns, rows];
  const relabelled = await relabel(indexed, users.labels, items.labels, rows.name === 'items', ctx);
  const byUser = await sortByUser(relabelled, 'keep', ctx);
  await inspect(byUser);
  await standardize(ratingsOf(byUser), scale, ctx);
  return byUser;
}

/** Damped means of the ratings, by position of users and items. */
export function meansByPosition({ rows, columns, facts: { means } }: LoadedSgdData): DampedMeans {
  const placed = (values: Float32Array, { labels: { order } }: SgdSide) => {
    const all = new Float32Array(values.length);
    for (let label = 0; label < values.length; label++) all[order[label]] = values[label];
    return all;
  };
  const [ofRows, ofColumns] = [placed(means.rows, rows), placed(means.columns, columns)];
  return rows.name === 'users'
    ? { mean: means.mean, users: ofRows, items: ofColumns }
    : { mean: means.mean, users: ofColumns, items: ofRows };
}

/** Converts damped means from the order of positions to the order of labels (a block's rows and columns). */
function blockMeans(
  { mean, users, items }: DampedMeans,
  labels: { readonly users: Labels; readonly items: Labels },
  rowsAre: SgdSide['name'],
): BlockMeans {
  const [ofUsers, ofItems] = [
    Float32Array.from(labels.users.order, (position) => users[position]),
    Float32Array.from(labels.items.order, (position) => items[position]),
  ];
  return rowsAre === 'users'
    ? { mean, rows: ofUsers, columns: ofItems }
    : { mean, rows: ofItems, columns: ofUsers };
}
