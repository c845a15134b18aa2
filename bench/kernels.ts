/**
 * The CPU kernels on one thread: each alone on rows that stay in the cache, and whole half-iterations over
 * synthetic ratings of MovieLens-20M's shape. Best of several runs. Counted flops: f(f + 1) per rating for
 * the hermitian, f³/3 + 4f² for Cholesky, 4f per rating and pass for matrix-free CG, 2f per product for
 * top-n.
 *
 *     node bench/kernels.ts [ranks = 32,64,128] [scale = 0.1] [build = relaxed-simd | simd]
 */
import { type MatrixView, SCRATCH_BYTES, type TaskScope } from '../cpu/handler.ts';
import { availableBuild, compileKernels, type KernelBuild } from '../cpu/compile-kernels.ts';
import { loadKernels } from '../cpu/kernels.ts';
import { squaredError } from '../cpu/tasks/squared-error.ts';
import { topN } from '../cpu/tasks/top-n.ts';
import { update } from '../cpu/tasks/update.ts';
import { scalePreset } from '../synthetic/preset.ts';
import { findPreset } from '../synthetic/presets.ts';
import type { JsonObject } from '../engine/json.ts';
import { type Partition, pieceOf } from '../engine/partition.ts';
import { CounterRandom } from '../engine/random.ts';
import { describeMachine } from './machine.ts';
import { ratingBlocks } from './rating-blocks.ts';
import type { SolverChoice } from '../operators/tasks/task-types.ts';

const ranks = (process.argv[2] ?? '32,64,128').split(',').map(Number);
const preset = scalePreset(findPreset('movielens20m'), Number(process.argv[3] ?? 0.1));
const build = (process.argv[4] ?? availableBuild()) as KernelBuild;
const { users: m, items: n, train } = preset;

console.log(describeMachine());
console.log(`WebAssembly ${build}, 1 thread; ${m} users, ${n} items, ${train} ratings`);
const solvers: Readonly<Record<string, SolverChoice>> = {
  cholesky: { cgBelow: 0, cgSteps: 0 },
  'cg, 6 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 6 },
  'cg, 3 steps': { cgBelow: 2 ** 31 - 1, cgSteps: 3 },
  'non-negative': { cgBelow: 0, cgSteps: 0, exact: 'nonnegative' },
};
/** Ratings of the row used to measure solvers. */
const COUNT = 256;
const { byUser, byItem } = ratingBlocks(preset);
for (const rank of ranks) benchRank(rank);

/** Kernels with x, θ and workspace for one row in their own memory. */
interface Bench {
  readonly rank: number;
  readonly memory: WebAssembly.Memory;
  readonly kernels: ReturnType<typeof loadKernels>;
  readonly scratch: number;
  readonly x: MatrixView;
  readonly theta: MatrixView;
}

function benchRank(rank: number): void {
  const bench = makeBench(rank);
  console.log(`rank ${rank}`);
  benchRows(bench);
  for (const [name, solver] of Object.entries(solvers)) benchIteration(bench, name, solver);
  benchPasses(bench);
}

function makeBench(rank: number): Bench {
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
  return { rank, memory, kernels: loadKernels(memory, compileKernels(build)), scratch, x, theta };
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

/** Both half-iterations. */
function benchIteration(bench: Bench, name: string, solver: SolverChoice): void {
  const { x, theta } = bench;
  const itemParams = { ...solver, from: 0, to: n };
  const userParams = { ...solver, from: 0, to: m };
  let [items, people] = [Infinity, Infinity];
  for (let run = 0; run < 3; run++) {
    const ofItems = { fixed: x, previous: theta, factors: theta };
    const ofUsers = { fixed: theta, previous: x, factors: x };
    const itemScope = scopeOf(bench, itemParams, { block: byItem }, ofItems);
    const userScope = scopeOf(bench, userParams, { block: byUser }, ofUsers);
    items = Math.min(
      items,
      milliseconds(() => update(itemScope)),
    );
    people = Math.min(
      people,
      milliseconds(() => update(userScope)),
    );
  }
  const rate = train / (items + people) / 1e3;
  print(
    `iteration, ${name}`,
    `${(items + people).toFixed(0)} ms (items ${items.toFixed(0)}, users ${people.toFixed(0)})`,
    `${rate.toFixed(1)} M ratings/s`,
  );
}

/** Passes that only read the factors. */
function benchPasses(bench: Bench): void {
  const { rank, x, theta } = bench;
  const matrices = { rowFactors: x, columnFactors: theta };
  const error = best(3, () => squaredError(scopeOf(bench, { from: 0, to: m }, { block: byUser }, matrices)));
  print('squared-error', `${error.toFixed(0)} ms`, `${(train / error / 1e3).toFixed(1)} M ratings/s`);
  const rows = Math.min(m, 2_048);
  const top = best(3, () =>
    topN(scopeOf(bench, { from: 0, to: rows, n: 10 }, { exclude: byUser }, matrices)),
  );
  print('top-n, n = 10', `${((rows / top) * 1e3).toFixed(0)} users/s`, gigaflops(2 * rank * n * rows, top));
}

/** One row's workspace: addresses, and `size`, the bytes of a vector of factors. */
interface Row {
  readonly size: number;
  readonly stride: number;
  readonly indices: number;
  readonly values: number;
  readonly bias: number;
  readonly x: number;
  readonly vectors: number;
  readonly objective: number;
  readonly matrix: number;
  readonly work: number;
}

/** Each solver on one row of 256 ratings and one of rank / 2. */
function benchRows(bench: Bench): void {
  const row = makeRow(bench);
  const repeat = Math.ceil(2e6 / bench.rank ** 2);
  const time = (body: () => void) =>
    best(7, () => {
      for (let k = 0; k < repeat; k++) body();
    }) / repeat;
  benchEquations(bench, row, time);
  benchWithoutEquations(bench, row, time);
}

function makeRow({ memory, scratch, theta: { stride } }: Bench): Row {
  const size = stride * 4;
  const indices = scratch;
  const values = indices + 4 * COUNT;
  const bias = values + 4 * COUNT;
  const x = bias + size;
  const vectors = x + size;
  const objective = vectors + 5 * size;
  const matrix = objective + size;
  const work = matrix + size * stride;
  new Uint32Array(memory.buffer, indices, COUNT).forEach(
    (_, k, all) => (all[k] = (k * 7) % Math.min(n, 500)),
  );
  new Float32Array(memory.buffer, values, COUNT).forEach((_, k, all) => (all[k] = 1 + ((k * 37) % 11)));
  return { size, stride, indices, values, bias, x, vectors, objective, matrix, work };
}

/** Solvers that form A. */
function benchEquations(
  { rank, memory, kernels, theta: { pointer: theta } }: Bench,
  { size, stride, indices, values, bias, x, vectors, matrix, work }: Row,
  time: (body: () => void) => number,
): void {
  const form = () =>
    kernels.addNormalEquations(theta, size, indices, values, COUNT, matrix, bias, 0, work, 0);
  const hermitian = time(form);
  print(
    'hermitian',
    `${((hermitian / COUNT) * 1e6).toFixed(1)} ns/rating`,
    gigaflops(COUNT * rank * (rank + 1), hermitian),
  );
  form();
  kernels.addDiagonal(matrix, size, rank, 20);
  const definite = new Float32Array(memory.buffer, matrix, stride * stride);
  const saved = definite.slice();
  const right = new Float32Array(memory.buffer, bias, stride);
  const restore = time(() => definite.set(saved));
  const solved = time(() => {
    definite.set(saved);
    right.fill(1);
    kernels.solveCholesky(matrix, size, bias, x, vectors);
  });
  print(
    'cholesky',
    `${((solved - restore) * 1e3).toFixed(1)} us/row`,
    gigaflops(rank ** 3 / 3 + 4 * rank ** 2, solved - restore),
  );
  // A row's workspace starts with its A; its equations are stored after that.
  const equations = work + 12 * size * stride;
  const packed = time(() => kernels.addToEquations(equations, size, rank, COUNT, 0, 0, matrix));
  const taken = time(() => kernels.takeEquations(equations, size, rank, 0, matrix));
  print('to equations and back', `${(packed * 1e3).toFixed(1)} + ${(taken * 1e3).toFixed(1)} us/row`, '');
}

/** Solvers that do not form A. */
function benchWithoutEquations(
  { rank, memory, kernels, theta: { pointer: theta } }: Bench,
  { size, stride, indices, values, x, vectors, objective, matrix, work }: Row,
  time: (body: () => void) => number,
): void {
  const start = new Float32Array(memory.buffer, x, stride);
  const short = rank / 2;
  const dual = time(() =>
    kernels.solveDual(theta, size, indices, values, short, 5, 0, 0, x, matrix, work, vectors, objective),
  );
  print(`dual, ${short} ratings`, `${(dual * 1e3).toFixed(1)} us/row`, '');
  const free = time(() => {
    start.fill(0);
    kernels.solveMatrixFree(
      theta,
      size,
      indices,
      values,
      COUNT,
      COUNT,
      0.01,
      0,
      0,
      0,
      x,
      6,
      0,
      work,
      vectors,
      objective,
      1,
    );
  });
  print(
    'cg, 6 steps',
    `${((free / COUNT) * 1e6).toFixed(1)} ns/rating`,
    gigaflops(7 * 4 * rank * COUNT, free),
  );
}

function milliseconds(body: () => void): number {
  const start = performance.now();
  body();
  return performance.now() - start;
}

function best(runs: number, body: () => void): number {
  let least = Infinity;
  for (let run = 0; run < runs; run++) least = Math.min(least, milliseconds(body));
  return least;
}

function gigaflops(flops: number, time: number): string {
  return `${(flops / time / 1e6).toFixed(1)} GFLOP/s`;
}

function print(what: string, first: string, second: string): void {
  console.log(`  ${what.padEnd(24)}${first.padEnd(36)}${second}`);
}
