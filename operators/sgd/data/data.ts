import { startPhase } from '../../../engine/events.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../../engine/keys/key-column.ts';
import { addValues } from '../../../engine/numbers/concatenate.ts';
import { dataSetName } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import {
  type BlockMeans,
  type DampedMeans,
  type RatingFacts,
  rowFacts,
} from '../../evaluation/rating-facts.ts';
import type { IndexedRatings } from '../../ratings/ids/number-ids.ts';
import { type Labels, labelsOf, relabel } from '../../ratings/ids/relabel.ts';
import { passOver, inMemory } from '../../ratings/parts-in-files.ts';
import {
  blockOf,
  emptyBlock,
  heldBlocks,
  hostForm,
  type RatingBlock,
  type Ratings,
  ratingsOf,
} from '../../ratings/ratings.ts';
import { offsetsOf } from '../../ratings/row-ranges.ts';
import { sortByUser, sortRatings } from '../../ratings/sort-ratings.ts';
import { TaskRun } from '../../tasks/run-tasks.ts';
import { type DuplicatePolicy } from '../../tasks/tasks.ts';
import { sidesOf } from '../schedules/schedule.ts';

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

/** The linear scale of ratings for SGD: a rating r becomes (r - center) / deviation. */
interface RatingScale {
  /** μ, even if it is not subtracted. */
  readonly mean: number;
  /** μ with biases, else 0, since predictions without biases have no term for it. */
  readonly center: number;
  /**
   * The standard deviation σ of all ratings; if all are equal, their absolute value, or 1 if it is 0. It is
   * at least the lower bound that a continued model gives, and without biases at least a fraction of |μ|.
   */
  readonly deviation: number;
  /** True for ratings that are all equal, within rounding. */
  readonly alike?: boolean;
}

const STAGE = 'look-at-ratings';

/** Number of ratings that are summed sequentially. */
const RUN = 1 << 20;

/**
 * Without biases, `deviation` is at least |μ| / MOST_LEVEL. The factors must then produce the mean of the
 * ratings, and steps on such large factors would be too long. On scales of stars |μ| / σ is 3 to 6.
 */
const MOST_LEVEL = 8;

/**
 * Computes the scale of ratings in memory. `centered`: subtract the mean. `given`: a mean, and a lower bound
 * of σ, from the model that is continued.
 */
export async function ratingScale(
  ratings: Ratings,
  centered: boolean,
  given: { readonly mean?: number; readonly leastDeviation?: number },
  ctx: ExecutionContext,
): Promise<RatingScale> {
  const own = (await sumOf(ratings, undefined, ctx)) / ratings.ratings;
  const mean = given.mean ?? own;
  const deviation = Math.sqrt((await sumOf(ratings, own, ctx)) / ratings.ratings);
  // True if the deviation is at most half the relative distance between float32 numbers, that is rounding.
  const alike = deviation <= 2 ** -24 * Math.abs(own);
  const least = Math.max(given.leastDeviation ?? 0, centered ? 0 : Math.abs(own) / MOST_LEVEL);
  return {
    mean,
    center: centered ? mean : 0,
    deviation: Math.max(least, alike ? Math.abs(own) || 1 : deviation),
    alike,
  };
}

/**
 * Σ r, or with `apart` Σ (r - apart)², in float64. Runs of RUN ratings in row order are summed sequentially,
 * so ratings in one block or in bands of rows give the same bits. A run within one band is a task; runs
 * across bands are summed here.
 */
async function sumOf(ratings: Ratings, apart: number | undefined, ctx: ExecutionContext): Promise<number> {
  const sums = new Float64Array(Math.ceil(ratings.ratings / RUN));
  let first = 0;
  for (const { block } of heldBlocks(ratings)) {
    const [whole, ends]: [RowRange[], RowRange[]] = [[], []];
    for (let from = 0; from < block.ratings;) {
      const to = Math.min(block.ratings, from + RUN - ((first + from) % RUN));
      (to - from === RUN ? whole : ends).push({ from, to });
      from = to;
    }
    const run = (from: number) => Math.floor((first + from) / RUN);
    for (const { from, to } of ends)
      sums[run(from)] = addValues(sums[run(from)], block.values.subarray(from, to), apart);
    if (whole.length > 0) {
      const pass = new TaskRun(ctx, STAGE);
      const inputs = { block: pass.send('block', { ...hostForm(block), reused: true }) };
      const params = apart === undefined ? {} : { apart };
      pass.sliced({ kernel: 'sum-values', inputs, outputs: {}, params }, whole);
      const found = await pass.values('sum-values');
      whole.forEach(({ from }, at) => (sums[run(from)] = found[at].sum));
    }
    first += block.ratings;
  }
  return sums.reduce((sum, one) => sum + one, 0);
}

/**
 * Converts ratings to the scale, in place. It must be called before they are sent to a device other than the
 * CPU. Returns Σ r² of the scaled ratings.
 */
export async function standardize(
  ratings: Ratings,
  { center, deviation }: RatingScale,
  ctx: ExecutionContext,
): Promise<number> {
  const slices = await passOver(ratings, ctx, ({ block }, give) => ({
    kernel: 'standardize',
    inputs: {},
    outputs: { block: give('block', hostForm(block)) },
    params: { center, deviation },
  }));
  return slices.reduce((sum, { squares }) => sum + squares, 0);
}

/**
 * Converts the validation pairs and the training ratings from labels (random row numbers) to positions, and
 * returns them with the ids of users and items in the order of positions.
 */
export async function pairsByPosition(data: SgdData, test: RatingBlock, ctx: ExecutionContext) {
  const [ofRows, ofColumns] = [data.rows, data.columns].map(({ ids, labels }) => takeKeys(ids, labels.label));
  const [users, items] = data.rows.name === 'users' ? [ofRows, ofColumns] : [ofColumns, ofRows];
  const train = byPosition(await inMemory(data.ratings, ctx), data);
  return { users, items, test: byPosition(test, data), train };
}

/**
 * Converts the rows and columns of a block from labels to positions. Rows of the result are users, and the
 * items of a row ascend. The values are not set.
 */
function byPosition(block: RatingBlock, { rows, columns }: Pick<SgdData, 'rows' | 'columns'>): RatingBlock {
  const byUser = rows.name === 'users';
  const [users, items] = byUser ? [rows, columns] : [columns, rows];
  const pairs = (visit: (user: number, item: number) => void) => {
    for (let row = 0; row < block.rows; row++) {
      for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
        const [user, item] = byUser ? [row, block.indices[k]] : [block.indices[k], row];
        visit(users.labels.order[user], items.labels.order[item]);
      }
    }
  };
  const lengths = new Int32Array(users.labels.order.length);
  pairs((user) => lengths[user]++);
  const partition = emptyBlock(lengths);
  const { offsets, indices } = partition.columns as { offsets: Int32Array; indices: Uint32Array };
  const next = offsets.slice();
  pairs((user, item) => (indices[next[user]++] = item));
  for (let user = 0; user < lengths.length; user++) indices.subarray(offsets[user], offsets[user + 1]).sort();
  return blockOf({ name: dataSetName('by-position'), partition: 0, version: 0 }, partition);
}
