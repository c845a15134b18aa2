import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { hostForm } from '../ratings/rating-block.ts';
import { balancedRanges } from '../ratings/row-ranges.ts';
import { blocksOf } from '../ratings/parts-in-files.ts';
import type { Ratings } from '../ratings/ratings.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';
import { type BlockMeans, DAMPING, type RatingFacts, type SideFacts } from './rating-facts.ts';
import { passOver, sideOf, totalOf } from './sorted-facts.ts';

const STAGE = 'look-at-ratings';

/**
 * Most tasks that sum the columns of a block, each in arrays of its own, and the least ratings of each for a
 * column.
 */
const SUMMING_TASKS = 32;
const RATINGS_A_COLUMN = 4;

/**
 * The facts of ratings that lie by their rows alone. Damped means are the item's first, then the user's of
 * what is left:
 *
 *     γ_v = Σ_u (r_uv - μ) / (n_v + 25)        β_u = Σ_v (r_uv - μ - γ_v) / (n_u + 10)
 *
 * `rowsAre` says which side the rows are. `given`: μ and means of earlier ratings, NaN for rows and columns
 * that are new; those stay as they are. Sums do not depend on the number of threads.
 *
 */
export async function rowFacts(
  ratings: Ratings,
  columns: number,
  rowsAre: 'users' | 'items',
  given: BlockMeans | undefined,
  ctx: ExecutionContext,
): Promise<RatingFacts> {
  using _ = ctx.metrics.begin('look at ratings');
  const { sum, least, most, whole, squares } = totalOf(
    await passOver(ratings, ctx, ({ block }, give) => {
      const rowSums = give('rowSums', {
        layout: 'row-sums',
        rows: block.rows,
        columns: { sums: sharedArray(Float64Array, block.rows) },
      });
      return {
        kernel: 'sum-ratings',
        inputs: { block: give('block', hostForm(block)) },
        outputs: { rowSums },
        params: {},
      };
    }),
  );
  // Equal ratings have a mean without rounding.
  const own = least === most ? least : sum / ratings.ratings;
  const mean = given?.mean ?? own;
  const means = {
    mean,
    rows: sharedArray(Float32Array, ratings.rows),
    columns: sharedArray(Float32Array, columns),
  };
  const fillRows = async (damping: number) => {
    await passOver(ratings, ctx, ({ from, block }, give) => {
      const columnMeans = give('columnMeans', {
        layout: 'means',
        rows: columns,
        columns: { values: means.columns },
      });
      const rowMeans = give('rowMeans', {
        layout: 'means',
        rows: block.rows,
        columns: { values: means.rows.subarray(from, from + block.rows) },
      });
      return {
        kernel: 'damped-means',
        inputs: { block: give('block', hostForm(block)), columnMeans },
        outputs: { rowMeans },
        params: { mean, damping },
      };
    });
    keep(given?.rows, means.rows);
  };
  if (rowsAre === 'items') await fillRows(DAMPING.items);
  const { sums, counts } = await columnSums(ratings, columns, rowsAre === 'items' ? means : undefined, ctx);
  const damping = rowsAre === 'users' ? DAMPING.items : DAMPING.users;
  for (let column = 0; column < columns; column++)
    means.columns[column] =
      (sums[column] - (rowsAre === 'users' ? counts[column] * mean : 0)) / (counts[column] + damping);
  keep(given?.columns, means.columns);
  if (rowsAre === 'users') await fillRows(DAMPING.users);
  const [ofRows, ofColumns] = [sideOf(ratings), sideOfCounts(counts)];
  const [users, items] = rowsAre === 'users' ? [ofRows, ofColumns] : [ofColumns, ofRows];
  return {
    ratings: ratings.ratings,
    mean: own,
    deviation: least === most ? 0 : Math.sqrt(squares / ratings.ratings),
    least,
    most,
    whole,
    users,
    items,
    means,
    columnCounts: counts,
  };
}

/** Σ of the ratings of each column, or of what the means of the rows leave of them, and their number. */
async function columnSums(
  ratings: Ratings,
  columns: number,
  means: BlockMeans | undefined,
  ctx: ExecutionContext,
): Promise<{ readonly sums: Float64Array; readonly counts: Int32Array }> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('columns');
  const [sums, counts] = [new Float64Array(columns), new Int32Array(columns)];
  let part = 0;
  for await (const { from, block } of blocksOf(ratings, ctx)) {
    const [held, rowMeans] = ['block', 'rowMeans'].map((what): PartitionRef => ({
      name: `${name}/${what}`,
      partition: part,
      version: 0,
    }));
    const given: Given[] = [[held, { ...hostForm(block), reused: true }, place]];
    if (means)
      given.push([
        rowMeans,
        {
          layout: 'means',
          rows: block.rows,
          columns: { values: means.rows.subarray(from, from + block.rows) },
          reused: true,
        },
        place,
      ]);
    const tasks = Math.max(
      1,
      Math.min(SUMMING_TASKS, Math.floor(block.ratings / (RATINGS_A_COLUMN * columns))),
    );
    const steps = new StepList(contracts);
    const refs = balancedRanges(block.offsets, tasks).map(({ from: first, to }, slice) => {
      const ref = { name: `${name}/sums.${part}`, partition: slice, version: 0 };
      const task: TaskOf<'sum-columns'> = {
        kernel: 'sum-columns',
        inputs: { block: held, ...(means ? { rowMeans } : {}) },
        outputs: { sums: ref },
        params: { from: first, to, columns, ...(means ? { mean: means.mean } : {}) },
      };
      steps.handOut(STAGE, ref, place, steps.task(STAGE, place, task));
      return ref;
    });
    steps.free(STAGE, place, [...given.map(([ref]) => ref), ...refs]);
    for (const { columns: found } of (await runSteps(steps.steps, ctx, { given })).handed) {
      const [more, count] = [found.sums as Float64Array, found.counts as Int32Array];
      for (let column = 0; column < columns; column++) {
        sums[column] += more[column];
        counts[column] += count[column];
      }
    }
    part++;
  }
  return { sums, counts };
}

/** Puts the means that are known, which are numbers, in place of those computed. */
function keep(known: Float32Array | undefined, means: Float32Array): void {
  known?.forEach((mean, position) => {
    if (!Number.isNaN(mean)) means[position] = mean;
  });
}

function sideOfCounts(counts: Int32Array): SideFacts {
  let [rated, single] = [0, 0];
  for (const count of counts) {
    if (count > 0) rated++;
    if (count === 1) single++;
  }
  return { rated, single };
}
