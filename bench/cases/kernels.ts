import { type MatrixView, SCRATCH_BYTES, type TaskScope } from '../../cpu/handler.ts';
import { availableBuild, compileKernels, type KernelBuild } from '../../cpu/compile-kernels.ts';
import { RowProblem } from '../../cpu/generated/structs.ts';
import { loadKernels } from '../../cpu/kernels.ts';
import { Struct } from '../../cpu/scratch.ts';
import { squaredError } from '../../cpu/tasks/squared-error.ts';
import { topN } from '../../cpu/tasks/top-n.ts';
import { update } from '../../cpu/tasks/update.ts';
import { type RatingPreset, scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type Partition, pieceOf, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { buildRatingTables } from '../../synthetic/ratings/rating-tables.ts';
import type { SolverChoice } from '../../operators/tasks/task-types.ts';
import type { Case, Row as BenchRow } from '../harness.ts';

const solvers: Readonly<Record<string, SolverChoice>> = {
  cholesky: { cgBelow: 0, cgSteps: 0 },
  'cg, 6 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 6 },
  'cg, 3 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 3 },
  'non-negative': { cgBelow: 0, cgSteps: 0, exact: 'nonnegative' },
};
/** Ratings of the row used to measure solvers. */
const COUNT = 256;

const kernels: Case = {
  about:
    'The CPU kernels on one thread: each alone on rows that stay in the cache, and whole ' +
    "half-iterations over ratings of MovieLens-20M's shape. Counted flops: f(f + 1) a rating for the " +
    'hermitian, f³/3 + 4f² for Cholesky, 4f a rating and pass for CG without A, 2f a product for top-n.',
  options: { ranks: '32,64,128', scale: '0.1', build: '' },
  columns: { time: 'us', rate: 'GFLOP/s', ratings: 'M/s' },
  rounds: 5,
  warmUp: 1,
  *rows({ options: { ranks, scale, build } }) {
    const preset = scalePreset(findPreset('movielens20m'), Number(scale));
    const blocks = ratingBlocks(preset);
    for (const rank of ranks.split(',').map(Number)) {
      const bench = makeBench(preset, rank, (build || availableBuild()) as KernelBuild);
      for (const work of [...rowWorks(bench), ...blockWorks(bench, blocks)]) yield rowOf(rank, work);
    }
  },
};
export default kernels;

/** Something to measure: `flops` and `ratings` of one run of `body`, of which `repeat` are timed together. */
interface Work {
  readonly name: string;
  readonly flops?: number;
  readonly ratings?: number;
  readonly repeat?: number;
  /** Part of each run of `body` that does not count. */
  readonly without?: () => void;
  readonly body: () => void;
}

function rowOf(rank: number, { name, flops, ratings, repeat = 1, without, body }: Work): BenchRow {
  const time = (of: () => void) => {
    const start = performance.now();
    for (let k = 0; k < repeat; k++) of();
    return (1000 * (performance.now() - start)) / repeat;
  };
  const run = () => {
    const us = time(body) - (without === undefined ? 0 : time(without));
    return { time: us, rate: flops && flops / us / 1e3, ratings: ratings && ratings / us };
  };
  return { name: `rank ${rank}, ${name}`, engines: { '1 thread': run } };
}

/** Kernels with x, θ and workspace for one row in their own memory. */
interface Bench {
  readonly preset: RatingPreset;
  readonly rank: number;
  readonly memory: WebAssembly.Memory;
  readonly kernels: ReturnType<typeof loadKernels>;
  readonly scratch: number;
  readonly x: MatrixView;
  readonly theta: MatrixView;
}

function makeBench(preset: RatingPreset, rank: number, build: KernelBuild): Bench {
  const { users: m, items: n } = preset;
  const stride = Math.ceil(rank / 8) * 8;
  const bytes = (m + n) * stride * 4 + SCRATCH_BYTES;
  const memory = new WebAssembly.Memory({
    initial: 1 + Math.ceil(bytes / 65_536),
    maximum: 65_536,
    shared: true,
  });
  const scratch = 65_536;
  const x: MatrixView = { pointer: scratch + SCRATCH_BYTES, rows: m, columns: rank, stride };
  const theta: MatrixView = { pointer: x.pointer + m * stride * 4, rows: n, columns: rank, stride };
  const random = new CounterRandom(rank);
  const factors = new Float32Array(memory.buffer, x.pointer, (m + n) * stride);
  for (let k = 0; k < factors.length; k++)
    factors[k] = k % stride < rank ? (random.uniform(k) - 0.5) / Math.sqrt(rank) : 0;
  return { preset, rank, memory, kernels: loadKernels(memory, compileKernels(build)), scratch, x, theta };
}

function scopeOf<Params extends JsonObject>(
  { rank, scratch, memory, kernels }: Bench,
  params: Params,
  inputs: Record<string, Partition>,
  matrices: Record<string, MatrixView>,
): TaskScope<Params & { rank: number; lambda: number }> {
  return {
    params: { rank, lambda: 0.05, ...params },
    partition: (name) => inputs[name],
    piece: (name, piece) => pieceOf(inputs[name], piece),
    hasInput: (name) => name in inputs,
    hasMatrix: (name) => name in matrices,
    matrix: (name) => matrices[name],
    scratch,
    memory,
    kernels,
    cancelled: () => false,
  };
}

/** Both half-iterations by each solver, and passes that only read the factors. */
function blockWorks(bench: Bench, { byUser, byItem }: ReturnType<typeof ratingBlocks>): Work[] {
  const { rank, x, theta } = bench;
  const { users: m, items: n, train } = bench.preset;
  const matrices = { rowFactors: x, columnFactors: theta };
  const iterations = Object.entries(solvers).map(([name, solver]) => {
    const ofItems = { fixed: x, previous: theta, factors: theta };
    const ofUsers = { fixed: theta, previous: x, factors: x };
    const items = scopeOf(bench, { ...solver, from: 0, to: n }, { block: byItem }, ofItems);
    const users = scopeOf(bench, { ...solver, from: 0, to: m }, { block: byUser }, ofUsers);
    const body = () => {
      update(items);
      update(users);
    };
    return { name: `iteration, ${name}`, ratings: train, body };
  });
  const errors = scopeOf(bench, { from: 0, to: m }, { block: byUser }, matrices);
  const rows = Math.min(m, 2_048);
  const top = scopeOf(bench, { from: 0, to: rows, n: 10 }, { exclude: byUser }, matrices);
  return [
    ...iterations,
    { name: 'squared-error', ratings: train, body: () => squaredError(errors) },
    { name: `top-n, n = 10, ${rows} users`, flops: 2 * rank * n * rows, body: () => topN(top) },
  ];
}

/** The problem of one row, and the address of its x. */
function makeRow({ memory, rank, scratch, theta, preset: { items: n } }: Bench) {
  const size = theta.stride * 4;
  const indices = scratch + RowProblem.bytes;
  const values = indices + 4 * COUNT;
  const x = 64 * Math.ceil((values + 4 * COUNT) / 64);
  new Uint32Array(memory.buffer, indices, COUNT).forEach(
    (_, k, all) => (all[k] = (k * 7) % Math.min(n, 500)),
  );
  new Float32Array(memory.buffer, values, COUNT).forEach((_, k, all) => (all[k] = 1 + ((k * 37) % 11)));
  const common = { theta: theta.pointer, size, rank, workspace: x + size, far: 1, steps: 6 };
  const problem = new Struct(memory, scratch, RowProblem)
    .clear()
    .set({ ...common, indices, values, x, previous: x });
  return { problem, x };
}

/** Each solver on one row of 256 ratings and one of rank / 2. */
function rowWorks(bench: Bench): Work[] {
  const { rank, memory, kernels, theta } = bench;
  const { stride } = theta;
  const { problem, x } = makeRow(bench);
  const [size, matrix] = [4 * stride, problem.get('workspace')];
  const bias = kernels.vectorsOf(matrix, size);
  const repeat = Math.ceil(2e6 / rank ** 2);
  const form = () => kernels.accumulateRow(problem.set({ count: COUNT }).address, 0, 0);
  form();
  kernels.addDiagonal(matrix, size, rank, 20);
  const definite = new Float32Array(memory.buffer, matrix, stride * stride);
  const saved = definite.slice();
  const right = new Float32Array(memory.buffer, bias, stride);
  const start = new Float32Array(memory.buffer, x, stride);
  const restore = () => definite.set(saved);
  const solve = () => {
    restore();
    right.fill(1);
    kernels.solveCholesky(matrix, size, bias, x, bias + size);
  };
  // A row's workspace starts with its A; its equations are stored after that.
  const equations = kernels.gatheredOf(matrix, size) + 12 * size * stride;
  const short = rank / 2;
  const dual = () => kernels.solveDual(problem.set({ count: short, shift: 5 }).address);
  const free = () => {
    start.fill(0);
    kernels.solveMatrixFree(problem.set({ count: COUNT, shift: 0.01 }).address, COUNT);
  };
  const works: Work[] = [
    { name: 'hermitian', flops: COUNT * rank * (rank + 1), ratings: COUNT, body: form },
    { name: 'cholesky', flops: rank ** 3 / 3 + 4 * rank ** 2, without: restore, body: solve },
    { name: 'to equations', body: () => kernels.addToEquations(equations, size, rank, COUNT, 0, 0, matrix) },
    { name: 'from equations', body: () => kernels.takeEquations(equations, size, rank, 0, matrix) },
    { name: `dual, ${short} ratings`, ratings: short, body: dual },
    { name: 'cg, 6 steps', flops: 7 * 4 * rank * COUNT, ratings: COUNT, body: free },
  ];
  return works.map((one) => ({ ...one, repeat }));
}

/** The training part as two rating-blocks. */
function ratingBlocks(preset: RatingPreset): { byUser: Partition; byItem: Partition } {
  const { users: m, items: n, train } = preset;
  const [user, item, rating] = [new Int32Array(train), new Int32Array(train), new Float32Array(train)];
  let at = 0;
  for (const { batch } of generateRatings(buildRatingTables(preset, 1), { parts: ['train'] })) {
    [user, item, rating].forEach((column, k) =>
      column.set(batch.getChildAt(k)!.data[0].values as Int32Array, at),
    );
    at += batch.numRows;
  }
  // Users are in order: sorted by item, users ascend within an item; sorted back by user, items ascend within
  // a user.
  const byItem = compress(n, item, user, rating);
  const items = new Int32Array(train);
  const offsets = byItem.columns.offsets as Int32Array;
  for (let row = 0; row < n; row++) items.fill(row, offsets[row], offsets[row + 1]);
  return {
    byItem,
    byUser: compress(m, byItem.columns.indices as Uint32Array, items, byItem.columns.values as Float32Array),
  };
}

function compress(
  rows: number,
  rowOf: ArrayLike<number>,
  columnOf: ArrayLike<number>,
  ratings: ArrayLike<number>,
): Partition {
  const train = ratings.length;
  const offsets = sharedArray(Int32Array, rows + 1);
  const indices = sharedArray(Uint32Array, train);
  const values = sharedArray(Float32Array, train);
  for (let k = 0; k < train; k++) offsets[rowOf[k] + 1]++;
  for (let row = 0; row < rows; row++) offsets[row + 1] += offsets[row];
  const cursors = offsets.slice();
  for (let k = 0; k < train; k++) {
    const place = cursors[rowOf[k]]++;
    indices[place] = columnOf[k];
    values[place] = ratings[k];
  }
  return { layout: 'rating-block', rows, columns: { offsets, indices, values } };
}
