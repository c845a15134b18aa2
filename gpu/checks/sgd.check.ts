/**
 * Checks of SGD against the same steps in float64 in the kernel's order, with factors rounded to float16 after
 * each step if the kernel stores them so. In problems whose teams of threads run at the same time no two teams
 * share a row or a column, so that the order of the teams makes no difference.
 */
import { stepInOrder } from '../../cpu/reference/sgd.ts';
import type { JsonObject } from '../../engine/json.ts';
import { fromHalf } from '../../engine/numbers/half.ts';
import type { Partition } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import {
  blockOf,
  columnsOf,
  factorsOf,
  randomBlock,
  randomFactors,
} from '../../operators/tasks/sample-inputs.ts';
import type { GpuTaskScope } from '../handler.ts';
import { sgdBlock, sgdListKernel, sgdTiles, sgdWaves } from '../sgd/epoch.task.ts';
import {
  batchOrder,
  sgdTileScatterKernel,
  sgdTilesKernel,
  tileBatches,
  tileLists,
  type TileLists,
} from '../sgd/sgd-tiles.ts';
import { sgdWavesKernel } from '../sgd/sgd-waves.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelDescriptor } from '../webgpu/kernel.ts';
import { deviation, type KernelCheck, worse, roundToHalf } from './support/check.ts';
import { openTask, type OpenTask } from './support/run-kernel.ts';

/** Parameters of a kernel's steps. */
interface StepShape {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  readonly adaptive: boolean;
  readonly lanes: number;
  readonly arithmetic?: 'f32' | 'f16';
}

interface Rating {
  readonly row: number;
  readonly column: number;
  readonly value: number;
}

/** The matrices that steps change, by the names of the tasks' outputs: factors, and AdaGrad's sums. */
type Sides = Readonly<Record<'rows' | 'columns' | 'rowSums' | 'columnSums', Partition>>;

/** Ratings, and how a task steps them. */
interface Problem {
  readonly what: string;
  readonly kernel: KernelDescriptor<never>;
  /** Parameters of the kernel that are not in StepShape. */
  readonly others: JsonObject;
  readonly handler: (scope: GpuTaskScope<never>) => Promise<{ readonly rows: number }>;
  readonly params: JsonObject;
  readonly inputs: Readonly<Record<string, Partition>>;
  readonly rows: number;
  readonly columns: number;
  /** True: the task steps a copy of its inputs. */
  readonly copies: boolean;
  /**
   * The ratings in the order of their steps. A kernel keeps the factors of a row (with `both`, also of a column)
   * in registers while the ratings of a run have the same one: they are only then rounded.
   */
  readonly runs: (task: OpenTask<JsonObject>) => Promise<readonly (readonly Rating[])[]>;
  readonly kept: 'none' | 'rows' | 'both';
}

const RATES = { rate: 0.03, rowLambda: 0.05, columnLambda: 0.11 } as const;

/** Limit of the deviation in float32, relative to the largest element. */
const LIMIT = 1e-5;
/**
 * Limit of the deviation for factors stored as float16: a value near the midpoint between two float16 numbers
 * may be rounded up or down.
 */
const HALF_LIMIT = 2 ** -9;

function stepCheck(shape: StepShape, problem: Problem): KernelCheck {
  const { rank, precision, biases, adaptive, lanes, arithmetic } = shape;
  const { kernel, others, what } = problem;
  const params = { precision, biases, adaptive, lanes, ...others, features: rank + (biases ? 2 : 0) };
  return {
    name: kernel.name,
    variant:
      `rank ${rank}, ${precision}${biases ? ', biases' : ''}${adaptive ? ', AdaGrad' : ''}, ` +
      `${lanes === 1 ? '1 thread' : `${lanes} threads`} a rating, ` +
      `${arithmetic === 'f16' ? 'float16 arithmetic, ' : ''}${what}`,
    admitted: (gpu) => gpu.admits(kernel as unknown as KernelDescriptor, params),
    run: (gpu) => checkSteps(gpu, shape, problem),
  };
}

async function checkSteps(gpu: Gpu, shape: StepShape, problem: Problem) {
  const { arithmetic: _, ...steps } = shape;
  const { rows, columns, copies, kept } = problem;
  const start = randomSides(rows, columns, shape, shape.rank);
  const sources = {
    sourceRows: start.rows,
    sourceColumns: start.columns,
    sourceRowSums: start.rowSums,
    sourceColumnSums: start.columnSums,
  };
  const task = await openTask<JsonObject>(
    gpu,
    { ...steps, ...RATES, ...problem.params },
    { ...(copies && sources), ...problem.inputs },
    { outputs: copies ? randomSides(rows, columns, shape, shape.rank + 1) : start },
  );
  try {
    const runs = await problem.runs(task);
    const step = async () => {
      const stepped = await problem.handler(task.scope as never);
      return { ...stepped, factors: await task.fetchPadded('rows') };
    };
    const first = await step();
    if (copies) {
      // A second epoch from the same factors steps every rating too; in waves it gives the same bits.
      const ratings = problem.inputs.block.columns.indices.length;
      const again = kept === 'both' ? (await step()).factors : first.factors;
      const differ = first.factors.some((value, at) => !Object.is(value, again[at]));
      if (first.rows !== ratings || runs.flat().length !== ratings || differ)
        return { error: Infinity, limit: 0 };
    }
    const expected = steppedSides(start, runs, shape, kept);
    return {
      error: await stepError(task, start, expected, shape),
      limit: shape.precision === 'f16' ? HALF_LIMIT : LIMIT,
    };
  } finally {
    task.close();
  }
}

/**
 * Random factors of rows and columns. With biases, each has one feature that is always 1. For AdaGrad also
 * positive sums of squared gradients.
 */
function randomSides(rows: number, columns: number, { rank, biases }: StepShape, seed: number): Sides {
  const features = rank + (biases ? 2 : 0);
  const random = new CounterRandom(seed, 7);
  const side = (count: number, one: number, which: number) => {
    const matrix = randomFactors(count, features, seed + which);
    if (biases) for (let row = 0; row < count; row++) matrix.columns.values[row * features + one] = 1;
    return matrix;
  };
  const sums = (count: number, which: number) =>
    factorsOf(count, 1, (row) => 2 * random.uniform(2 * row + which));
  return {
    rows: side(rows, 1, 1),
    columns: side(columns, 0, 2),
    rowSums: sums(rows, 0),
    columnSums: sums(columns, 1),
  };
}

/** The factors of rows and columns after all runs of steps, executed one run after the other. */
function steppedSides(
  start: Sides,
  runs: readonly (readonly Rating[])[],
  { rank, precision, biases, adaptive }: StepShape,
  kept: Problem['kept'],
): Readonly<Record<keyof Sides, Float64Array>> {
  const half = precision === 'f16';
  const stride = rank + (biases ? 2 : 0);
  const [p, q, rowSums, columnSums] = [start.rows, start.columns, start.rowSums, start.columnSums].map(
    ({ columns }) => Float64Array.from(columns.values, Number),
  );
  const sums = { rows: rowSums, columns: columnSums };
  const store = (values: Float64Array, row: number) => {
    for (let at = row * stride; at < (row + 1) * stride; at++) values[at] = roundToHalf(values[at]);
  };
  if (half) {
    for (let row = 0; row < start.rows.rows; row++) store(p, row);
    for (let column = 0; column < start.columns.rows; column++) store(q, column);
  }
  for (const ratings of runs) {
    ratings.forEach(({ row, column, value }, k) => {
      stepInOrder(
        p,
        q,
        stride,
        { rows: [row], columns: [column], values: [value] },
        { rank, biases, ...RATES },
        adaptive ? sums : undefined,
      );
      if (half && (kept !== 'both' || ratings[k + 1]?.column !== column)) store(q, column);
      if (half && (kept === 'none' || ratings[k + 1]?.row !== row)) store(p, row);
    });
  }
  return { rows: p, columns: q, rowSums: sums.rows, columnSums: sums.columns };
}

/** The largest deviation of the matrices after the steps; Infinity if padding or a constant 1 changed. */
async function stepError(
  task: Pick<OpenTask<JsonObject>, 'fetch' | 'fetchPadded'>,
  start: Sides,
  expected: ReturnType<typeof steppedSides>,
  { rank, biases, adaptive }: StepShape,
): Promise<number> {
  const features = rank + (biases ? 2 : 0);
  let error = 0;
  for (const [name, one] of [
    ['rows', 1],
    ['columns', 0],
  ] as const) {
    const padded = await task.fetchPadded(name);
    const stride = padded.length / start[name].rows;
    const found = padded.filter((_, at) => at % stride < features);
    const isWrong = padded.some((value, at) => {
      const feature = at % stride;
      return feature >= features ? value !== 0 : biases && feature === one && value !== 1;
    });
    error = worse(error, isWrong ? Infinity : deviation(found, expected[name]));
  }
  for (const name of adaptive ? (['rowSums', 'columnSums'] as const) : []) {
    const { columns } = await task.fetch(name);
    error = worse(error, deviation(columns.values as Float32Array, expected[name]));
  }
  return error;
}

interface ListProblem {
  readonly batches: number;
  /** Ratings of a batch; the last batch has two fewer. */
  readonly batch: number;
  /** The batches order[from] .. order[to - 1] are stepped. */
  readonly from: number;
  readonly to: number;
  /** Teams that the task requests. */
  readonly workers: number;
}

/** A list of ratings in which each batch has its own rows and columns, so that its ratings share none. */
function listProblem(what: string, { batches, batch, from, to, workers }: ListProblem): Problem {
  const [rowsEach, columnsEach] = [5, 7];
  const random = new CounterRandom(batch);
  const ratings = Array.from({ length: batches * batch - 2 }, (_, k): Rating => {
    const number = Math.floor(k / batch);
    return {
      row: number * rowsEach + ((2 * k) % rowsEach),
      column: number * columnsEach + ((3 * k) % columnsEach),
      value: Math.fround(2 * random.uniform(k) - 1),
    };
  });
  const order = Uint32Array.from({ length: batches }, (_, at) => (3 * at + 1) % batches);
  const visited = Array.from(order.subarray(from, to)).flatMap((which) =>
    ratings.slice(which * batch, (which + 1) * batch),
  );
  return {
    what,
    kernel: sgdListKernel as KernelDescriptor<never>,
    others: { threads: 128 },
    handler: sgdBlock,
    params: { workers, from, to, batch },
    inputs: {
      block: {
        layout: 'rating-list',
        rows: ratings.length,
        columns: {
          rows: Uint32Array.from(ratings, ({ row }) => row),
          columns: Uint32Array.from(ratings, ({ column }) => column),
          values: Float32Array.from(ratings, ({ value }) => value),
        },
      },
      order: { layout: 'batch-order', rows: batches, columns: { order } },
    },
    rows: batches * rowsEach,
    columns: batches * columnsEach,
    copies: false,
    runs: async () => [visited],
    kept: 'none',
  };
}

const NO_COLUMN = 0xffff_ffff;
const LEVEL = 1.5;
const [SEED, EPOCH] = [11, 3];

interface TileProblem {
  readonly block: Partition;
  readonly columns: number;
  readonly tiles: number;
  readonly threads: number;
}

/** The ratings of each tile, in the order in which the tile has them. */
async function dealtRatings(gpu: Gpu, lists: TileLists, count: number): Promise<Rating[][]> {
  const { tiles, places } = lists;
  const [starts, columns, words] = [
    new Uint32Array(tiles + 1),
    new Uint32Array(tiles * places),
    new Uint32Array(2 * count),
  ];
  await gpu.download(lists.starts, starts);
  await gpu.download(lists.columns, columns);
  await gpu.download(lists.ratings, words);
  return Array.from({ length: tiles }, (_, tile) =>
    Array.from({ length: starts[tile + 1] - starts[tile] }, (_unused, k): Rating => {
      const [row, packed] = words.subarray(2 * (starts[tile] + k));
      return {
        row,
        column: columns[tile * places + (packed & 0xffff)],
        value: LEVEL + fromHalf(packed >>> 16),
      };
    }),
  );
}

/** Ratings in tiles (groups of columns), of which a workgroup steps one each. */
function tileProblem(
  what: string,
  { block, columns, tiles, threads }: TileProblem,
  { lanes, arithmetic = 'f32' }: Pick<StepShape, 'lanes' | 'arithmetic'>,
): Problem {
  return {
    what,
    kernel: sgdTilesKernel as KernelDescriptor<never>,
    others: { arithmetic, threads, places: Math.ceil(columns / tiles) },
    handler: sgdTiles,
    params: { arithmetic, tiles, threads, level: LEVEL, seed: SEED, epoch: EPOCH },
    inputs: { block },
    rows: block.rows,
    columns,
    copies: true,
    runs: async ({ scope }) => {
      const lists = await tileLists(scope.gpu, scope.block('block'), columns, tiles, LEVEL);
      const dealt = await dealtRatings(scope.gpu, lists, block.columns.indices.length);
      return dealt.map((ratings, tile) => walkOf(ratings, tile, lists.largest, threads, lanes));
    },
    kept: arithmetic === 'f16' ? 'none' : 'rows',
  };
}

/** A tile's ratings in the order in which its teams of threads step them, one team after the other. */
function walkOf(
  ratings: readonly Rating[],
  tile: number,
  largest: number,
  threads: number,
  lanes: number,
): Rating[] {
  // The number of batches if the factors of all rows fit the cache.
  const batches = tileBatches(largest, 0, { threads, lanes });
  const { multiplier, offset } = batchOrder(batches, SEED, EPOCH);
  const start = (which: number) =>
    which * Math.floor(ratings.length / batches) + Math.min(which, ratings.length % batches);
  const walk: Rating[] = [];
  for (let team = 0; team < threads / lanes; team++) {
    for (let batch = team; batch < batches; batch += threads / lanes) {
      const which = (batch * multiplier + offset) % batches;
      const own = ratings.slice(start(which), start(which + 1));
      const first =
        own.length === 0 ? 0 : ((Math.imul(tile, 40503) + Math.imul(which, 9973)) >>> 0) % own.length;
      walk.push(...own.slice(first), ...own.slice(0, first));
    }
  }
  return walk;
}

/** The ratings as a block; inside a row they keep their order. */
function blockByRow(ratings: readonly Rating[], rows: number): Partition {
  const byRow = Array.from({ length: rows }, (_, row) => ratings.filter((rating) => rating.row === row));
  const values = byRow.flat();
  return blockOf(
    byRow.map((own) => own.map(({ column }) => column)),
    (k) => values[k].value,
  );
}

/**
 * A problem in which no row has ratings in two tiles. Every tile has two columns, and half of the tiles a
 * third one; the first column has `most` ratings.
 */
function ownRows(tiles: number, most: number, threads: number): TileProblem {
  const columns = 2 * tiles + Math.ceil(tiles / 2);
  const rowsEach = 24;
  const random = new CounterRandom(most, tiles);
  const ratings: Rating[] = [];
  for (let column = 0; column < columns; column++) {
    // As in the kernel's lists, columns are assigned to tiles by descending number of ratings: to the tiles
    // in ascending order, then in descending order, and so on.
    const [place, across] = [Math.floor(column / tiles), column % tiles];
    const tile = place % 2 === 0 ? across : tiles - 1 - across;
    for (let k = 0; k < most - column; k++)
      ratings.push({
        row: tile * rowsEach + ((5 * column + k) % rowsEach),
        column,
        value: LEVEL + 2 * random.uniform(ratings.length) - 1,
      });
  }
  return { block: blockByRow(ratings, tiles * rowsEach), columns, tiles, threads };
}

/** A problem with one rating for each row and each column: no two steps share factors, in any order. */
function matching(count: number, tiles: number, threads: number): TileProblem {
  const random = new CounterRandom(count);
  const ratings = Array.from({ length: count }, (_, row): Rating => ({
    row,
    column: (7 * row + 3) % count,
    value: LEVEL + 2 * random.uniform(row) - 1,
  }));
  return { block: blockByRow(ratings, count), columns: count, tiles, threads };
}

/** A problem in which some tiles have no ratings; each tile has one column. */
function emptyTiles(): TileProblem {
  const ratings = [3, 1, 1, 2].map((row, k): Rating => ({
    row,
    column: k === 3 ? 4 : 2,
    value: LEVEL + k / 4,
  }));
  return { block: blockByRow(ratings, 5), columns: 6, tiles: 6, threads: 4 };
}

/**
 * Blocks of which those of a wave share no rows and columns, and are stepped in exactly one order; inside a
 * block, ratings share rows and columns as in real data. `rowStarts`: bands of rows, one for each worker.
 */
function waveProblem(
  block: Partition,
  rowStarts: readonly number[],
  columnStarts: readonly number[],
): Problem {
  const bands = columnStarts.length - 1;
  const workers = rowStarts.slice(1).map((_, worker) => worker);
  // The band of columns of each worker in each wave: different within a wave, and over all waves each band
  // once. In the last wave no worker has a band.
  const waves = [
    ...Array.from({ length: bands }, (_, wave) => workers.map((worker) => (wave + 2 * worker) % bands)),
    workers.map(() => NO_COLUMN),
  ];
  const ratingsOf = (worker: number, band: number): Rating[] => {
    if (band === NO_COLUMN) return [];
    const ratings: Rating[] = [];
    for (let row = rowStarts[worker]; row < rowStarts[worker + 1]; row++) {
      const first = Number(block.columns.offsets[row]);
      columnsOf(block, row).forEach((column, k) => {
        if (column >= columnStarts[band] && column < columnStarts[band + 1])
          ratings.push({ row, column, value: Number(block.columns.values[first + k]) });
      });
    }
    return ratings;
  };
  return {
    what: workers.length === 1 ? '1 worker' : `${workers.length} workers`,
    kernel: sgdWavesKernel as unknown as KernelDescriptor<never>,
    others: {},
    handler: sgdWaves,
    params: { rowStarts, columnStarts },
    inputs: {
      block,
      order: { layout: 'wave-order', rows: waves.length, columns: { order: Uint32Array.from(waves.flat()) } },
    },
    rows: block.rows,
    columns: columnStarts[bands],
    copies: true,
    runs: async () => waves.flatMap((own) => own.map((band, worker) => ratingsOf(worker, band))),
    kept: 'both',
  };
}

const f32 = { precision: 'f32', biases: false, adaptive: false, lanes: 1 } as const;
const f16 = { ...f32, precision: 'f16' } as const;
const both = { biases: true, adaptive: true } as const;

/** Ranks and numbers of threads per rating that together reach every branch of the kernels' text. */
const stepShapes: readonly StepShape[] = [
  ...[1, 7, 10, 32, 64].map((rank) => ({ ...f32, rank })),
  ...[1, 10, 32].map((rank) => ({ ...f16, rank })),
  { ...f32, ...both, rank: 7 },
  { ...f16, ...both, rank: 30 },
  { ...f16, rank: 20, adaptive: true },
  ...[10, 64, 100, 128, 200, 512].map((rank) => ({ ...f32, rank, lanes: 4 })),
  ...[7, 100, 128].map((rank) => ({ ...f16, rank, lanes: 4 })),
  { ...f32, ...both, rank: 10, lanes: 4 },
  { ...f32, rank: 64, lanes: 4, biases: true },
  { ...f16, ...both, rank: 98, lanes: 4 },
  ...[8, 16, 32].flatMap((lanes) => [
    { ...f16, rank: 128, lanes },
    { ...f16, rank: 512, lanes },
    { ...f32, ...both, rank: 200, lanes },
  ]),
];

/** Steps in float16 arithmetic. */
const halves: readonly StepShape[] = [
  ...[1, 10, 32].map((rank) => ({ ...f16, rank })),
  ...[7, 64, 100, 128, 200].flatMap((rank) => [2, 4].map((lanes) => ({ ...f16, rank, lanes }))),
  { ...f16, ...both, rank: 30 },
  { ...f16, rank: 20, adaptive: true },
  ...[64, 100, 128].map((rank) => ({ ...f16, biases: true, rank, lanes: 4 })),
  ...[16, 32].map((rank) => ({ ...f16, biases: true, rank, lanes: rank / 16 })),
  { ...f16, ...both, rank: 128, lanes: 4 },
  { ...f16, ...both, rank: 98, lanes: 4 },
  { ...f16, rank: 256, lanes: 8 },
].map((shape): StepShape => ({ ...shape, arithmetic: 'f16' }));

/**
 * Shapes of float16 rows that are an equal number of 16-byte groups for each thread and some words more (see
 * EvenRow), in float32 arithmetic.
 */
const tails: readonly StepShape[] = [
  { rank: 128, lanes: 4 },
  { rank: 36, lanes: 4 },
  { rank: 64, lanes: 4 },
  { rank: 132, lanes: 16 },
].map((shape) => ({ ...f16, biases: true, ...shape }));

const tileCases: readonly (readonly [StepShape, string, TileProblem])[] = [
  ...[...stepShapes, ...tails, ...halves].map(
    (shape) => [shape, 'rows of each tile', ownRows(3, 20, shape.lanes)] as const,
  ),
  ...[
    { ...f32, rank: 3 },
    { ...f16, ...both, rank: 3 },
    { ...f32, adaptive: true, lanes: 4, rank: 3 },
    { ...f32, rank: 5, lanes: 4 },
    { ...f16, arithmetic: 'f16' as const, rank: 40, lanes: 4 },
  ].map((shape) => [shape, 'one rating each', matching(600, 3, 128)] as const),
  [{ ...f32, rank: 5 }, 'rows longer than a batch', ownRows(2, 700, 1)],
  [{ ...f32, ...both, rank: 6, lanes: 4 }, 'tiles without ratings', emptyTiles()],
];

/**
 * Bands of rows with one row and with many, blocks without ratings, and a row with ratings in every band of
 * columns.
 */
const waves = waveProblem(
  randomBlock([5, 0, 1, 40, 3, 2, 0, 17, 9, 1, 1, 30, 0], 41, 5),
  [0, 3, 4, 8, 13],
  [0, 1, 6, 7, 15, 22, 30, 36, 40, 41],
);

export const sgdChecks: readonly KernelCheck[] = [
  ...tileCases.map(([shape, what, problem]) => stepCheck(shape, tileProblem(what, problem, shape))),
  ...[
    {
      what: 'rows of all lengths',
      block: randomBlock(
        [0, 1, 300, 0, 2, 90, ...Array.from({ length: 150 }, (_, row) => row % 11), 0],
        80,
        5,
      ),
      columns: 80,
      tiles: 7,
    },
    { what: 'a tile a column', block: randomBlock([4, 9, 0, 3], 40, 6), columns: 40, tiles: 40 },
    { what: 'one tile', block: randomBlock([4, 9, 0, 3], 40, 6), columns: 40, tiles: 1 },
  ].map(({ what, ...problem }): KernelCheck => ({
    name: sgdTileScatterKernel.name,
    variant: what,
    run: (gpu) => checkDealing(gpu, problem),
  })),
  ...stepShapes.map((shape) =>
    stepCheck(
      shape,
      listProblem('batches in an order', { batches: 7, batch: 20, from: 1, to: 6, workers: 1 }),
    ),
  ),
  stepCheck(
    { ...f32, rank: 4 },
    listProblem('a batch longer than the list', { batches: 1, batch: 300, from: 0, to: 1, workers: 1 }),
  ),
  stepCheck(
    { ...f32, ...both, rank: 4, lanes: 4 },
    listProblem('more batches than teams', { batches: 100, batch: 6, from: 0, to: 100, workers: 64 }),
  ),
  stepCheck(
    { ...f32, rank: 4 },
    listProblem('more teams than batches', { batches: 40, batch: 9, from: 0, to: 40, workers: 600 }),
  ),
  // This kernel takes steps for few ratings at the same time. Many threads share a row, and each holds few of
  // the row's features.
  ...[...stepShapes.filter(({ rank, lanes }) => rank <= 32 * lanes), { ...f32, lanes: 32, rank: 512 }].map(
    (shape) => stepCheck(shape, waves),
  ),
  stepCheck({ ...f32, ...both, rank: 3 }, waveProblem(randomBlock([3, 0, 2], 3, 6), [0, 3], [0, 1, 3])),
];

/** Limit of the rounding of ratings to float16, which may be towards zero. */
const ROUNDING = 2 ** -10;

/**
 * Checks that every rating is exactly once in the tile of its column, and that each tile's ratings are sorted
 * by row.
 */
async function checkDealing(gpu: Gpu, { block, columns, tiles }: Omit<TileProblem, 'threads'>) {
  const opened = await openTask(gpu, {}, { block });
  try {
    const lists = await tileLists(gpu, opened.scope.block('block'), columns, tiles, LEVEL);
    const dealt = await dealtRatings(gpu, lists, block.columns.indices.length);
    const tileOf = new Map<number, number>();
    dealt.forEach((ratings, tile) =>
      ratings.forEach(({ column }) => tileOf.set(column, tileOf.get(column) ?? tile)),
    );
    const wrong = dealt.some((ratings, tile) =>
      ratings.some(
        ({ row, column }, k) =>
          column === NO_COLUMN || tileOf.get(column) !== tile || (k > 0 && row < ratings[k - 1].row),
      ),
    );
    const key = ({ row, column }: Rating) => row * columns + column;
    const { values } = block.columns;
    const given = Array.from({ length: block.rows }, (_, row) =>
      Array.from(columnsOf(block, row), (column) => ({ row, column })),
    )
      .flat()
      .map((one, k): Rating => ({ ...one, value: Number(values[k]) }));
    const sorted = (ratings: readonly Rating[]) =>
      ratings.toSorted((left, right) => key(left) - key(right) || left.value - right.value);
    const [found, expected] = [sorted(dealt.flat()), sorted(given)];
    const misplaced =
      wrong ||
      found.length !== expected.length ||
      found.some((rating, k) => key(rating) !== key(expected[k]));
    const errors = found.map(
      ({ value }, k) =>
        Math.abs(value - expected[k].value) / Math.max(Math.abs(expected[k].value - LEVEL), 2 ** -14),
    );
    return { error: misplaced ? Infinity : Math.max(...errors), limit: ROUNDING };
  } finally {
    opened.close();
  }
}
