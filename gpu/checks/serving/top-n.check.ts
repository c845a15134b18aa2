/**
 * Checks of top-n against its float64 version on the CPU. If the two return different columns at a place, the
 * error is the difference of these columns' scores.
 */
import { predictPair } from '../../../cpu/reference/errors.ts';
import { topN as topNTwin } from '../../../cpu/reference/top-n.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { topN } from '../../serving/top-n.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { PRODUCT_LIMIT } from '../support/limits.ts';
import { worse } from '../support/numbers.ts';
import {
  type HostBlock,
  hostMatrix,
  type HostMatrix,
  randomBlock,
  randomMatrix,
  runHandler,
} from '../support/task-scope.ts';

const NO_ITEM = 0xffff_ffff;

export interface TopNCase {
  readonly variant: string;
  readonly rowFactors: HostMatrix;
  readonly columnFactors: HostMatrix;
  readonly n: number;
  readonly from?: number;
  readonly to?: number;
  readonly exclude?: HostBlock;
  /** See `top-n` of KernelTasks. */
  readonly rowStart?: number;
  readonly bounds?: Float32Array;
  readonly order?: Uint32Array;
  /**
   * The limit of the error. It is 0 if scores are exact: equal scores must then have the same order as on the
   * CPU.
   */
  readonly limit?: number;
}

export function topNCheck(check: TopNCase): KernelCheck {
  return {
    name: 'top-n',
    variant: check.variant,
    run: async (gpu) => ({ error: await topNError(gpu, check), limit: check.limit ?? PRODUCT_LIMIT }),
  };
}

/** The largest error over the rows; Infinity if the lists have a wrong length. */
async function topNError(gpu: Gpu, check: TopNCase): Promise<number> {
  const { rowFactors, columnFactors, n, from = 0, to = rowFactors.rows, rowStart = 0 } = check;
  const { exclude, bounds, order } = check;
  const { partitions } = await runHandler(
    gpu,
    topN,
    { from, to, rank: rowFactors.columns, n, rowStart },
    {
      matrices: { rowFactors, columnFactors },
      blocks: exclude ? { exclude } : {},
      vectors: { ...(bounds ? { bounds } : {}), ...(order ? { order } : {}) },
    },
  );
  const { items, scores } = partitions!.top.columns as { items: Uint32Array; scores: Float32Array };
  if (items.length !== (to - from) * n) return Infinity;
  let error = 0;
  for (let row = from; row < to; row++) {
    const [begin, end] = [(row - from) * n, (row - from + 1) * n];
    const excluded = new Set(
      exclude?.indices.subarray(exclude.offsets[rowStart + row], exclude.offsets[rowStart + row + 1]),
    );
    const found = { items: items.subarray(begin, end), scores: scores.subarray(begin, end) };
    error = worse(error, rowError(found, allScores(check, row), excluded));
  }
  return error;
}

/** A row's scores in float64; the index is the item. */
function allScores({ rowFactors, columnFactors, order }: TopNCase, row: number): Float64Array {
  const all = new Float64Array(columnFactors.rows);
  for (let column = 0; column < all.length; column++)
    all[order?.[column] ?? column] = predictPair(
      rowFactors.values,
      row,
      columnFactors.values,
      column,
      rowFactors.stride,
    );
  return all;
}

/**
 * The largest error of a row. Infinity for a fault that rounding cannot explain: a wrong length or order, or
 * an excluded or repeated column.
 */
function rowError(
  { items, scores }: { readonly items: Uint32Array; readonly scores: Float32Array },
  all: Float64Array,
  excluded: ReadonlySet<number>,
): number {
  const twin = topNTwin(all, items.length, excluded);
  const found = items.subarray(0, twin.length);
  if (new Set(found).size !== found.length || found.some((item) => item >= all.length || excluded.has(item)))
    return Infinity;
  let error = 0;
  for (let k = 0; k < items.length; k++) {
    if (k >= twin.length) {
      if (items[k] !== NO_ITEM || !Number.isNaN(scores[k])) return Infinity;
      continue;
    }
    if (k > 0 && !(scores[k] < scores[k - 1] || (scores[k] === scores[k - 1] && items[k] > items[k - 1])))
      return Infinity;
    const difference = Math.max(Math.abs(scores[k] - all[items[k]]), Math.abs(scores[k] - all[twin[k]]));
    error = worse(error, difference);
  }
  return error;
}

/**
 * The columns sorted by descending norm, with their original numbers, and the bounds that top-n needs: the
 * largest norm of each eight columns, with a margin for rounding, as in operators/serving/items-by-norm.ts.
 */
export function byNorm(matrix: HostMatrix): {
  readonly matrix: HostMatrix;
  readonly bounds: Float32Array;
  readonly order: Uint32Array;
} {
  const rows = Array.from({ length: matrix.rows }, (_, row) =>
    matrix.values.subarray(row * matrix.stride, row * matrix.stride + matrix.columns),
  );
  const sorted = rows
    .map((row, column) => ({ row, column, norm: Math.hypot(...row) }))
    .sort((left, right) => right.norm - left.norm);
  const bounds = Float32Array.from(
    { length: Math.ceil(rows.length / 8) },
    (_, eight) => sorted[8 * eight].norm * (1 + 1e-4),
  );
  return {
    matrix: hostMatrix(matrix.rows, matrix.columns, (row, k) => sorted[row].row[k]),
    bounds,
    order: Uint32Array.from(sorted, ({ column }) => column),
  };
}

/** Exclusions: rows that exclude no, one, a few, most and all columns. */
function exclusionOf(rows: number, columns: number): HostBlock {
  return randomBlock(
    Array.from({ length: rows }, (_, row) => [0, 1, 2, 40, columns - 1, columns][row % 6]),
    columns,
    9,
  );
}

/** Small whole numbers, so that products are exact and many are equal. */
function wholeMatrix(rows: number, columns: number, seed: number): HostMatrix {
  const random = new CounterRandom(seed);
  return hostMatrix(rows, columns, (row, k) => random.below(row * columns + k, 3) - 1);
}

function atRank(rank: number): TopNCase[] {
  const [rowFactors, columnFactors] = [randomMatrix(70, rank, 1), randomMatrix(150, rank, 2)];
  return [{ variant: `rank ${rank}, n 10`, rowFactors, columnFactors, n: 10 }];
}

/** Factors of 140 rows and of 300 columns. */
const rank = 10;
const factors = { rowFactors: randomMatrix(140, rank, 3), columnFactors: randomMatrix(300, rank, 4) };

function lengthCases(): TopNCase[] {
  const { rowFactors, columnFactors } = factors;
  const falling = byNorm(
    hostMatrix(300, rank, (row, k) => columnFactors.values[row * columnFactors.stride + k] / (1 + row / 20)),
  );
  const bounded = { rowFactors, columnFactors: falling.matrix, bounds: falling.bounds };
  const exclude = exclusionOf(140, 300);
  return [1, 10, 100, 1000].flatMap((n): TopNCase[] => [
    { variant: `n ${n}`, ...factors, n },
    { variant: `n ${n}, exclusions`, ...factors, n, exclude },
    { variant: `n ${n}, bounds`, ...bounded, n },
    { variant: `n ${n}, exclusions, bounds`, ...bounded, n, exclude },
  ]);
}

function tieCases(): TopNCase[] {
  const whole = { rowFactors: wholeMatrix(130, 4, 5), columnFactors: wholeMatrix(200, 4, 6), limit: 0 };
  const { matrix: columnFactors, bounds, order } = byNorm(whole.columnFactors);
  const bounded = { rowFactors: whole.rowFactors, columnFactors, bounds, n: 20, limit: 0 };
  const exclude = exclusionOf(130, 200);
  return [
    { variant: 'ties', ...whole, n: 20 },
    { variant: 'ties, n 1', ...whole, n: 1 },
    { variant: 'ties, exclusions', ...whole, n: 7, exclude },
    { variant: 'ties, bounds', ...bounded },
    { variant: 'ties, bounds, order', ...bounded, order, exclude },
    { variant: 'equal scores, order', ...bounded, rowFactors: hostMatrix(130, 4, () => 0), order },
  ];
}

/** A zero row, and rows and columns with values that are not finite. */
function notFiniteCases(): TopNCase[] {
  const odd = {
    rowFactors: hostMatrix(6, 4, (row, k) => [0, NaN, Infinity, k + 1, -1, k === 2 ? NaN : 1][row]),
    columnFactors: hostMatrix(70, 4, (row, k) => (row % 5 === 3 && k === 1 ? NaN : (row % 7) - 3)),
    limit: 0,
  };
  return [
    { variant: 'not finite', ...odd, n: 10, from: 0, to: 2 },
    { variant: 'not finite columns', ...odd, n: 100, from: 3, to: 6 },
  ];
}

function rangeCases(): TopNCase[] {
  const { rowFactors, columnFactors } = factors;
  const exclude = exclusionOf(140, 300);
  const last = { rowFactors: randomMatrix(40, rank, 7), columnFactors, exclude, rowStart: 100 };
  return [
    { variant: 'some rows', ...factors, n: 10, from: 5, to: 137, exclude },
    { variant: 'the last rows of the exclusions', ...last, n: 10 },
    { variant: 'no rows', ...factors, n: 10, from: 5, to: 5 },
    { variant: 'one column', rowFactors, columnFactors: randomMatrix(1, rank, 8), n: 2 },
    { variant: '64 columns', rowFactors, columnFactors: randomMatrix(64, rank, 8), n: 3 },
    { variant: '65 columns', rowFactors, columnFactors: randomMatrix(65, rank, 8), n: 3 },
  ];
}

export const topNChecks: readonly KernelCheck[] = [
  ...CHECKED_RANKS.flatMap(atRank),
  ...lengthCases(),
  ...tieCases(),
  ...notFiniteCases(),
  ...rangeCases(),
].map(topNCheck);
