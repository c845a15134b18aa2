/** Every way to solve rows: see cpu/assembly/update.ts and gpu/update. */
import { expect } from 'vitest';
import {
  explicitProducts,
  freeBiasedGradients,
  freeGradients,
  gramTimes,
  implicitProducts,
} from '../../../../cpu/reference/matrix-free.ts';
import {
  gramMatrix,
  implicitEquations,
  normalEquations,
} from '../../../../cpu/reference/normal-equations.ts';
import { solveNonnegative, solveCholesky } from '../../../../cpu/reference/solvers.ts';
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
  /**
   * negative: A is negative definite, so that steps end at once; lost: the last row has a rating that is NaN, and
   * is reported. Default: neither.
   */
  readonly fault?: 'negative' | 'lost';
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

/** The loops of conjugate gradients. */
const byCg: readonly (Solving & { readonly name: string; readonly onlyCpu?: boolean })[] = [
  { name: 'packed panels', kind: 'explicit', solver: 'cg', lengths: packed, steps: few },
  { name: 'packed panels, implicit', kind: 'implicit', solver: 'cg', lengths: packed, steps: few },
  { name: 'short rows by CG', kind: 'explicit', solver: 'cg', lengths: short },
  { name: 'short implicit rows by CG', kind: 'implicit', solver: 'cg', lengths: short },
  { name: 'CG on a formed A', kind: 'explicit', solver: 'cg', lengths: () => [300], steps: many },
  { name: 'sums of equations', kind: 'explicit', solver: 'cg', lengths: short, from: 'equations' },
  { name: 'sums of equations, implicit', kind: 'implicit', solver: 'cg', lengths: short, from: 'equations' },
  { name: 'sums of vectors', kind: 'explicit', solver: 'cg', lengths: short, from: 'vectors' },
  { name: 'sums of vectors, implicit', kind: 'implicit', solver: 'cg', lengths: short, from: 'vectors' },
  { name: 'tiles', kind: 'explicit', solver: 'cg', lengths: () => [40, 900], tiled: true, onlyCpu: true },
  { name: 'a row in pieces', kind: 'explicit', solver: 'cg', lengths: pieces, onlyCpu: true },
  { name: 'an implicit row in pieces', kind: 'implicit', solver: 'cg', lengths: pieces, onlyCpu: true },
];

export const solvingCases: readonly RankCase[] = [
  solving('packed panels, biases', { kind: 'biases', solver: 'cg', lengths: packed, steps: few }),
  solving('Cholesky, direct and dual', { kind: 'explicit', solver: 'cholesky', lengths: around }),
  solving('Cholesky with biases', { kind: 'biases', solver: 'cholesky', lengths: around }),
  solving('Cholesky of implicit rows', { kind: 'implicit', solver: 'cholesky', lengths: around }),
  solving('x >= 0', { kind: 'explicit', solver: 'nonnegative', lengths: (rank) => [1, rank, 300] }),
  solving('sums of equations, biases', { kind: 'biases', solver: 'cg', lengths: short, from: 'equations' }),
  solving('sums of vectors, biases', { kind: 'biases', solver: 'cg', lengths: short, from: 'vectors' }),
  solving('tiles with biases', { kind: 'biases', solver: 'cg', lengths: () => [40, 900], tiled: true }, true),
  ...byCg.map((way) => ({ ...solving(way.name, way, way.onlyCpu), slow: way.lengths === pieces })),
  ...(['negative', 'lost'] as const).flatMap((fault) =>
    byCg.map((way) => ({
      ...solving(`${way.name}, with A or a rating ${fault}`, { ...way, fault }, way.onlyCpu),
      slow: true,
    })),
  ),
];

function solving(name: string, asked: Solving, onlyCpu = false): RankCase {
  return { name, onlyCpu, check: (tasks, rank) => checkRows(tasks, rank, asked) };
}

/** λ, and the shifts of implicit rows. */
const lambdaOf = ({ fault }: Solving) => (fault === 'negative' ? -100 : LAMBDA);
const shiftOf = ({ fault }: Solving) => (fault === 'negative' ? -1e6 : SHIFT);

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
  if (asked.fault === 'lost') valuesOf(block).fill(Number.NaN, -1);
  const biases = asked.kind === 'biases';
  const fixedBias = biases ? numbers('bias', COLUMNS, 1, 5) : undefined;
  const more: Refs =
    asked.kind === 'implicit' ? await gramAndShifts(tasks, theta, lengths.length, rank, shiftOf(asked)) : {};
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
  const lost = asked.fault === 'lost';
  expect(Number(values.badRow)).toBe(lost ? lengths.length - 1 : -1);
  if (lost) return parts.release();
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
  shift: number,
): Promise<Refs> {
  const gram = parts.allocate('gram', Math.ceil(rank / 16) * 16, rank);
  const all = parts.put('all', theta);
  await parts.run('gram', { from: 0, to: rank, rank, weight: GRAM_WEIGHT }, { factors: all }, { gram });
  const values = sharedArray(Float32Array, rows).fill(shift);
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
  { asked, rank, steps, lengths }: Sizes,
  given: Refs,
  more: Refs,
  outputs: Refs,
): Promise<JsonObject> {
  const { parts } = tasks;
  const { kind, solver, from, tiled } = asked;
  const [rows, lambda] = [lengths.length, lambdaOf(asked)];
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
    lambda,
    cgBelow: solver === 'cg' ? 2 ** 31 - 1 : 0,
    cgSteps: steps,
    ...(solver === 'nonnegative' ? { exact: solver } : {}),
    ...(tiled ? { tiled: { from: 30, to: 10_000, tileRows: 64 } } : {}),
    ...choice,
  };
  const { block, fixed, previous, ...ofColumns } = given;
  if (from === 'vectors') return stepByStep(tasks, { ...whole, lambda }, steps, { given, more, outputs });
  if (from === undefined) {
    const kernel = implicit ? 'update-implicit' : 'update';
    const own = implicit ? WEIGHTS : { mean: MEAN * Number(biases) };
    return (await parts.run(kernel, { ...params, ...own }, { ...given, ...more }, outputs)).values;
  }
  const equations = parts.allocate('equations', rows, equationColumns(rank, biases));
  await parts.run(
    'normal-equations',
    { ...whole, mean: MEAN * Number(biases), ...(implicit ? { implicit: WEIGHTS } : {}), ...choice },
    { block, fixed, ...ofColumns },
    { equations },
  );
  return (await parts.run('solve-equations', params, { equations, previous, ...more }, outputs)).values;
}

/** The steps of conjugate gradients as tasks of their own. */
async function stepByStep(
  { parts }: DeviceTasks,
  {
    lambda,
    ...whole
  }: { readonly from: number; readonly to: number; readonly rank: number; readonly lambda: number },
  steps: number,
  { given, more, outputs: { factors, bias } }: Readonly<Record<'given' | 'more' | 'outputs', Refs>>,
): Promise<JsonObject> {
  const { to: rows, rank } = whole;
  const weighed = 'gram' in more ? { implicit: WEIGHTS } : {};
  const { previous, block, fixed } = given;
  const own = { ...whole, lambda };
  const gradients = parts.allocate('gradients', rows, gradientColumns(rank, bias !== undefined));
  const direction = parts.allocate('direction', rows, rank);
  await parts.run('add-residuals', { ...whole, mean: bias ? MEAN : 0, ...weighed }, given, { gradients });
  await parts.run('begin-gradients', own, { previous, ...more }, { gradients, factors, direction });
  for (let step = 0; step < steps; step++) {
    const products = parts.allocate('products', rows, rank, {}, step);
    await parts.run('add-products', { ...whole, ...weighed }, { block, fixed, direction }, { products });
    await parts.run('step-gradients', own, { products, ...more }, { gradients, factors, direction });
  }
  return (
    await parts.run('end-gradients', own, { gradients, direction }, { factors, ...(bias ? { bias } : {}) })
  ).values;
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
function twinOf(asked: Solving, row: Row): Float64Array {
  const { kind, solver } = asked;
  const { theta, rank, start, steps, values } = row;
  const shift = lambdaOf(asked) * values.length;
  const of = { theta, stride: rank, rank };
  if (solver === 'cg') {
    if (kind === 'biases') return freeBiasedGradients(of, row, shift, values.length + shift, start, steps);
    const equations =
      kind === 'explicit'
        ? explicitProducts(of, row, shift)
        : implicitProducts(of, row, WEIGHTS, shiftOf(asked), gramTimes(of, COLUMNS, GRAM_WEIGHT));
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
