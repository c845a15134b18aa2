/** Every way to solve rows: see cpu/assembly/update.ts and gpu/update. */
import { expect } from 'vitest';
import { gramMatrix, implicitEquations } from '../../../../cpu/reference/implicit.ts';
import {
  explicitProducts,
  freeBiasedGradients,
  freeGradients,
  gramTimes,
  implicitProducts,
} from '../../../../cpu/reference/matrix-free.ts';
import { solveNonnegative } from '../../../../cpu/reference/nonnegative.ts';
import { normalEquations } from '../../../../cpu/reference/normal-equations.ts';
import { solveCholesky } from '../../../../cpu/reference/cholesky.ts';
import { updateBiasedRow } from '../../../../cpu/reference/update.ts';
import type { JsonObject } from '../../../../engine/json.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../../engine/partition.ts';
import { equationColumns } from '../../../../operators/tasks/equation-tasks.ts';
import { gradientColumns } from '../../../../operators/tasks/vector-tasks.ts';
import { ratingBlock, rowOf } from '../../../cpu/scope.ts';
import { numbers } from '../../../support/devices/device-parts.ts';
import { COLUMNS, type DeviceTasks, type RankCase, requireNear, valuesOf } from './rank-case.ts';

type Refs = Readonly<Record<string, PartitionRef>>;

interface Solving {
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly solver: 'cg' | 'cholesky' | 'nonnegative';
  /** Numbers of ratings of the rows, for rows with `stride` numbers. */
  lengths(rank: number, stride: number): readonly number[];
  /** Steps of conjugate gradients; default 3. */
  steps?(stride: number): number;
  /** Rows are solved from sums: of their equations, or of products with vectors. */
  readonly from?: 'equations' | 'vectors';
  readonly tiled?: boolean;
}

const [LAMBDA, MEAN, SHIFT, GRAM_WEIGHT] = [0.05, 2.5, 20, 0.1];
/** The rounding to 16 bits averages out over different columns, of which there are few here. */
const [LIMIT, PACKED_LIMIT] = [1e-3, 5e-3];
const WEIGHTS = { alpha: 2.5, base: 1 };

/** The number of ratings from which a row's panels are packed, and some more. */
const packed = (_: number, stride: number) => [0, Math.ceil(2 ** 17 / stride) + 3];
/** So few steps that rows are packed: above that, A of a long row is formed. */
const few = (stride: number) => (stride === 8 ? 1 : 3);
/** So many steps that A is formed. */
const many = (stride: number) => stride / 4 + 1;
const short = (rank: number) => [0, 1, 2, 7, 9, rank + 1];
/** Rows around the number of features, below which the dual system is solved. */
const around = (rank: number) => [0, 1, Math.ceil(rank / 2), Math.max(1, rank - 1), rank, rank + 8, 300];
/** Longer than a chunk of ratings, so that the row is read in pieces. */
const pieces = () => [66_000];

export const solvingCases: readonly RankCase[] = [
  solving('packed panels', { kind: 'explicit', solver: 'cg', lengths: packed, steps: few }),
  solving('packed panels, biases', { kind: 'biases', solver: 'cg', lengths: packed, steps: few }),
  solving('packed panels, implicit', { kind: 'implicit', solver: 'cg', lengths: packed, steps: few }),
  solving('short rows by CG', { kind: 'explicit', solver: 'cg', lengths: short }),
  solving('short implicit rows by CG', { kind: 'implicit', solver: 'cg', lengths: short }),
  solving('CG on a formed A', { kind: 'explicit', solver: 'cg', lengths: () => [300], steps: many }),
  solving('Cholesky, direct and dual', { kind: 'explicit', solver: 'cholesky', lengths: around }),
  solving('Cholesky with biases', { kind: 'biases', solver: 'cholesky', lengths: around }),
  solving('Cholesky of implicit rows', { kind: 'implicit', solver: 'cholesky', lengths: around }),
  solving('x >= 0', { kind: 'explicit', solver: 'nonnegative', lengths: (rank) => [1, rank, 300] }),
  solving('sums of equations', { kind: 'biases', solver: 'cg', lengths: short, from: 'equations' }),
  solving('sums of vectors', { kind: 'biases', solver: 'cg', lengths: short, from: 'vectors' }),
  {
    ...solving('tiles', { kind: 'biases', solver: 'cg', lengths: () => [40, 900], tiled: true }),
    onlyCpu: true,
  },
  {
    ...solving('a row in pieces', { kind: 'explicit', solver: 'cg', lengths: pieces }),
    onlyCpu: true,
    slow: true,
  },
  {
    ...solving('an implicit row in pieces', { kind: 'implicit', solver: 'cg', lengths: pieces }),
    onlyCpu: true,
    slow: true,
  },
];

function solving(name: string, asked: Solving): RankCase {
  return { name, check: (tasks, rank) => checkRows(tasks, rank, asked) };
}

async function checkRows(tasks: DeviceTasks, rank: number, asked: Solving): Promise<void> {
  const { parts } = tasks;
  const stride = Math.ceil(rank / 8) * 8;
  const lengths = asked.lengths(rank, stride);
  const steps = asked.steps?.(stride) ?? 3;
  const [theta, previous] = [
    numbers('factors', COLUMNS, rank, rank),
    numbers('factors', lengths.length, rank, 3),
  ];
  const block = ratingBlock(lengths, COLUMNS, rank);
  const biases = asked.kind === 'biases';
  const fixedBias = biases ? numbers('bias', COLUMNS, 1, 5) : undefined;
  const more: Refs = asked.kind === 'implicit' ? await gramAndShifts(tasks, theta, lengths.length, rank) : {};
  const given = {
    block: parts.put('block', block),
    fixed: parts.put('fixed', theta),
    previous: parts.put('previous', previous),
    ...(fixedBias ? { fixedBias: parts.put('fixedBias', fixedBias) } : {}),
  };
  const factors = parts.allocate('factors', lengths.length, rank);
  const bias = biases ? parts.allocate('bias', lengths.length, 1, { layout: 'bias', stride: 1 }) : undefined;
  const outputs: Refs = { factors, ...(bias ? { bias } : {}) };
  const values = await solve(tasks, { asked, rank, steps, lengths }, given, more, outputs);
  expect(values.badRow).toBe(-1);
  const [x, beta] = [await tasks.fetched(factors, rank), bias ? await parts.fetched(bias) : []];
  lengths.forEach((n, row) => {
    const found = [...x.subarray(row * rank, (row + 1) * rank), ...(bias ? [beta[row]] : [])];
    const { indices, values: ratings } = rowOf(block, row);
    const left = Float32Array.from(
      ratings,
      (rating, k) => rating - (fixedBias ? MEAN + valuesOf(fixedBias)[indices[k]] : 0),
    );
    const start = Float64Array.from(valuesOf(previous).subarray(row * rank, (row + 1) * rank));
    const expected = twinOf(asked, { theta: valuesOf(theta), rank, indices, values: left, start, steps });
    const limit = asked.lengths === packed ? PACKED_LIMIT : LIMIT;
    requireNear(found, n === 0 ? found.map(() => 0) : expected, limit, `the row of ${n} ratings`);
  });
  parts.release();
}

async function gramAndShifts(
  { parts }: DeviceTasks,
  theta: Partition,
  rows: number,
  rank: number,
): Promise<Refs> {
  const gram = parts.allocate('gram', Math.ceil(rank / 16) * 16, rank);
  const all = parts.put('all', theta);
  await parts.run('gram', { from: 0, to: rank, rank, weight: GRAM_WEIGHT }, { factors: all }, { gram });
  const values = sharedArray(Float32Array, rows).fill(SHIFT);
  return { gram, shifts: parts.put('shifts', { layout: 'row-shifts', rows, columns: { values } }) };
}

interface Sizes {
  readonly asked: Solving;
  readonly rank: number;
  readonly steps: number;
  readonly lengths: readonly number[];
}

async function solve(
  tasks: DeviceTasks,
  { asked: { kind, solver, from, tiled }, rank, steps, lengths }: Sizes,
  given: Refs,
  more: Refs,
  outputs: Refs,
): Promise<JsonObject> {
  const { parts } = tasks;
  const rows = lengths.length;
  const [biases, implicit] = [kind === 'biases', kind === 'implicit'];
  const problem = { rank, solver, cgSteps: steps, precision: 'f32', biases, implicit } as const;
  const choice = await parts.chosen({
    ...problem,
    rows,
    columns: COLUMNS,
    ratings: lengths.reduce((sum, n) => sum + n, 0),
    iterations: 10,
    longest: Math.max(...lengths),
    largestRating: 5,
  });
  const whole = { from: 0, to: rows, rank };
  const params = {
    ...whole,
    lambda: LAMBDA,
    cgBelow: solver === 'cg' ? 2 ** 31 - 1 : 0,
    cgSteps: steps,
    ...(solver === 'nonnegative' ? { exact: solver } : {}),
    ...(tiled ? { tiled: { from: 30, to: 10_000, tileRows: 64 } } : {}),
    ...choice,
  };
  const { block, fixed, previous, ...ofColumns } = given;
  if (from === 'vectors') return stepByStep(tasks, whole, steps, given, outputs);
  if (from === undefined) {
    const kernel = implicit ? 'update-implicit' : 'update';
    const own = implicit ? WEIGHTS : { mean: MEAN * Number(biases) };
    return (await parts.run(kernel, { ...params, ...own }, { ...given, ...more }, outputs)).values;
  }
  const equations = parts.allocate('equations', rows, equationColumns(rank, biases));
  await parts.run(
    'normal-equations',
    { ...whole, mean: MEAN, ...choice },
    { block, fixed, ...ofColumns },
    { equations },
  );
  return (await parts.run('solve-equations', params, { equations, previous }, outputs)).values;
}

/** The steps of conjugate gradients as tasks of their own. */
async function stepByStep(
  { parts }: DeviceTasks,
  whole: { readonly from: number; readonly to: number; readonly rank: number },
  steps: number,
  given: Refs,
  { factors, bias }: Refs,
): Promise<JsonObject> {
  const { to: rows, rank } = whole;
  const { previous, block, fixed } = given;
  const own = { ...whole, lambda: LAMBDA };
  const gradients = parts.allocate('gradients', rows, gradientColumns(rank, true));
  const direction = parts.allocate('direction', rows, rank);
  await parts.run('add-residuals', { ...whole, mean: MEAN }, given, { gradients });
  await parts.run('begin-gradients', own, { previous }, { gradients, factors, direction });
  for (let step = 0; step < steps; step++) {
    const products = parts.allocate('products', rows, rank, {}, step);
    await parts.run('add-products', whole, { block, fixed, direction }, { products });
    await parts.run('step-gradients', own, { products }, { gradients, factors, direction });
  }
  return (await parts.run('end-gradients', own, { gradients, direction }, { factors, bias })).values;
}

interface Row {
  readonly theta: Float32Array;
  readonly rank: number;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
  readonly start: Float64Array;
  readonly steps: number;
}

/** The solution of a row in float64; with biases, the row's bias after it. */
function twinOf({ kind, solver }: Solving, row: Row): Float64Array {
  const { theta, rank, start, steps, values } = row;
  const shift = LAMBDA * values.length;
  const of = { theta, stride: rank, rank };
  if (solver === 'cg') {
    if (kind === 'biases') return freeBiasedGradients(of, row, shift, values.length + shift, start, steps);
    const equations =
      kind === 'explicit'
        ? explicitProducts(of, row, shift)
        : implicitProducts(of, row, WEIGHTS, SHIFT, gramTimes(of, COLUMNS, GRAM_WEIGHT));
    return freeGradients(equations, start, steps);
  }
  if (kind === 'biases')
    return updateBiasedRow(theta, rank, rank, row, { shift, ownShift: shift }, true, start, steps)!;
  if (kind === 'implicit') {
    const gram = gramMatrix(theta, rank, rank, COLUMNS, GRAM_WEIGHT);
    const { matrix, bias } = implicitEquations(gram, theta, rank, rank, row, WEIGHTS, SHIFT);
    return solveCholesky(matrix, bias)!;
  }
  const equations = normalEquations(theta, rank, rank, row, LAMBDA);
  return solver === 'cholesky'
    ? solveCholesky(equations.matrix, equations.bias)!
    : solveNonnegative(equations)!;
}
