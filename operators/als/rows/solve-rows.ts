import {
  dataSetName,
  type MatrixShape,
  type Partition,
  type PartitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, type RatingBlock } from '../../ratings/ratings.ts';
import { balancedRanges, taskCount } from '../../ratings/row-ranges.ts';
import { addSliced, valuesOfStage } from '../../tasks/run-tasks.ts';
import type { RowSolving } from '../../tasks/search-tasks.ts';
import { contracts, type ImplicitWeights, type KernelChoice, type TaskOf } from '../../tasks/tasks.ts';
import { gramSlices } from '../implicit/stages.ts';
import { rowShifts } from '../implicit/weights.ts';
import { type ReportedObjective, sumOfObjectives } from '../solved-loss.ts';
import { tiledSlices } from '../tiles.ts';
import type { RowRegularization, SolverChoice, Tiling } from '../../tasks/task-types.ts';

/**
 * The minimization problem by which rows are solved from their ratings and the fixed side: rank,
 * regularization, biases or implicit weights.
 */
export interface RowRule extends RowRegularization {
  readonly rank: number;
  /** μ, only for rules with biases: each row has a bias, which is solved with its factors. */
  readonly mean?: number;
  readonly nonnegative?: boolean;
  /** For implicit data, whose rows have no bias: the weights of ratings, and of pairs without a rating. */
  readonly implicit?: ImplicitWeights & { readonly unobserved: number };
}

/** A matrix of factors that is on the device already, and stays there. */
export interface PlacedFactors {
  readonly ref: PartitionRef;
  readonly rows: number;
}

/** Rows to solve from the ratings of a block; matrices are row-major without padding. */
export interface GivenRows {
  readonly block: RatingBlock;
  /** True if the block is on the device already; it stays there. */
  readonly placed?: boolean;
  /** Factors θ of each column of the block, and if the rule has biases, the columns' biases γ. */
  readonly fixed: Float32Array | PlacedFactors;
  readonly fixedBiases?: Float32Array;
  /** Start of conjugate gradients; default: zeros. */
  readonly previous?: Float32Array;
  /** Shared memory that may be used for the solved factors, also if it has `previous`. */
  readonly into?: Float32Array;
  /**
   * For implicit data: the Gram matrix of all rows of the fixed side (see gramOf), and the number of these
   * rows.
   */
  readonly gram?: Float32Array;
  readonly columns?: number;
}

/** The solver, and the kernel for a device that has several. */
export type RowsSolver = SolverChoice &
  Partial<Pick<KernelChoice, 'variant' | 'precision' | 'ratingScale'>> & { readonly tiled?: Tiling };

export interface SolvedRows extends SolveOutcome {
  readonly factors: Float32Array;
  /** β, for rules with biases. */
  readonly biases?: Float32Array;
}

/** The result of solving some rows, without the rows. */
export interface SolveOutcome {
  /** The first row without a finite solution, or -1. */
  readonly badRow: number;
  /** Σ xᵀA x - 2 bᵀx over the rows, with their penalty in A; NaN where the kernel does not compute it. */
  readonly objective: number;
}

/** Returns a function that names the partitions of one run; no other run uses the same names. */
export function refsOf(stage: string): (part: string) => PartitionRef {
  const name = dataSetName(stage);
  return (part) => ({ name: `${name}/${part}`, partition: 0, version: 0 });
}

/** Rows for a device; a CPU also takes them as bits of float16. */
export function factorsOf(values: Float32Array | Uint16Array, rank: number): Partition {
  return { layout: 'factors', rows: values.length / rank, columns: { values } };
}

/** The row ranges into which the tasks of a pass cut a block. */
export function slicesOf({ offsets, ratings }: RatingBlock, { info }: Device) {
  return balancedRanges(offsets, info.wholePasses ? 1 : taskCount(ratings));
}

/** For implicit data: the numbers that are added to the diagonals of the rows' equations, as a partition. */
export function shiftsOf(block: RatingBlock, columns: number, rule: RowRule): Partition {
  const { lambda, exponent = 1, implicit } = rule;
  const unobservedWeight = implicit?.base === 0 ? implicit.unobserved : undefined;
  const values = rowShifts(block, columns, { regParam: lambda, regExponent: exponent, unobservedWeight });
  return { layout: 'row-shifts', rows: block.rows, columns: { values } };
}

/** The problem, solver and device of solveRows; `stage` names its measures. */
export interface RowsSolving {
  readonly stage: string;
  readonly rule: RowRule;
  readonly solver: RowsSolver;
  readonly device: Device;
}

/**
 * Solves given rows from a fixed side with the tasks of training, and so with the same bits. Training itself
 * does not use this function: it runs the same tasks by its plan, for rows that stay on the devices.
 */
export async function solveRows(
  rows: GivenRows,
  { stage, rule, solver, device }: RowsSolving,
  ctx: ExecutionContext,
): Promise<SolvedRows> {
  const { block, placed, fixed, previous, into } = rows;
  const { rank } = rule;
  const { place, strideStep, parallelism } = device.info;
  const columns = 'ref' in fixed ? fixed.rows : fixed.length / rank;
  const ref = refsOf(stage);
  const steps = new StepList(contracts);
  const given: Given[] = placed ? [] : [[block.ref, hostForm(block), place]];
  const put = (part: string, partition: Partition) => {
    given.push([ref(part), partition, place]);
    return ref(part);
  };
  const make = (part: string, shape: MatrixShape) => {
    steps.allocate(stage, place, ref(part), shape);
    return ref(part);
  };
  const shape = { rows: block.rows, columns: rank, stride: factorStride(rank, strideStep) };
  const inputs = {
    block: block.ref,
    fixed: 'ref' in fixed ? fixed.ref : put('fixed', factorsOf(fixed, rank)),
    previous: previous ? put('previous', factorsOf(previous, rank)) : make('previous', shape),
  };
  const outputs = { factors: make('factors', shape) };
  const solving = solvingOf(rule, solver);
  const task =
    solving.kernel === 'update'
      ? { ...solving, ...biasesOf({ inputs, outputs }, { ...rows, columns }, rule, { put, make }) }
      : { ...solving, inputs: { ...inputs, ...equationsOf(rows, rule, put) }, outputs };
  const tiled = { tiling: solver.tiled, fixedRows: columns, parallelism };
  addSliced(steps, stage, place, task, tiledSlices(block.offsets, slicesOf(block, device), tiled));
  const solved = Object.values(task.outputs);
  for (const output of solved) {
    if (into !== undefined && output === outputs.factors) steps.handOutInto(into, stage, output, place);
    else steps.handOut(stage, output, place);
  }
  const { block: own, fixed: theta, ...others } = task.inputs;
  const freed = [...('ref' in fixed ? [] : [theta]), ...(placed ? [] : [own])];
  steps.free(stage, place, [...Object.values(others), ...solved, ...freed]);
  const results = await runSteps(steps.steps, ctx, { given });
  const [factors, bias] = results.handed;
  return {
    factors: valuesOf(factors),
    ...(bias && { biases: valuesOf(bias) }),
    ...outcomeOf(valuesOfStage(results, stage, task.kernel)),
  };
}

/** The outcome of rows that several tasks solved. */
export function outcomeOf(
  values: readonly (ReportedObjective & { readonly badRow: number })[],
): SolveOutcome {
  return {
    badRow: values.find(({ badRow }) => badRow >= 0)?.badRow ?? -1,
    objective: sumOfObjectives(values),
  };
}

/**
 * `Put` sends a partition to the device; `Make` allocates a matrix there. `part`: the last part of the
 * partition's name.
 */
type Put = (part: string, partition: Partition) => PartitionRef;
type Make = (part: string, shape: MatrixShape) => PartitionRef;

type RowsUses = Pick<TaskOf<'update'>, 'inputs' | 'outputs'>;

/** The task that solves rows by a rule, without its inputs and outputs. */
export function solvingOf({ implicit, nonnegative, ...explicit }: RowRule, choice: RowsSolver): RowSolving {
  const solver = { ...choice, ...(nonnegative ? { exact: 'nonnegative' as const } : {}) };
  if (!implicit) return { kernel: 'update', params: { ...explicit, ...solver } };
  const { rank } = explicit;
  const { alpha, base } = implicit;
  return { kernel: 'update-implicit', params: { rank, alpha, base, ...solver } };
}

function biasesOf(
  { inputs, outputs }: RowsUses,
  { block, columns, fixedBiases }: Pick<GivenRows, 'block' | 'fixedBiases'> & { readonly columns: number },
  { mean }: RowRule,
  { put, make }: { readonly put: Put; readonly make: Make },
): RowsUses {
  if (mean === undefined) return { inputs, outputs };
  const values = fixedBiases ?? sharedArray(Float32Array, columns);
  const fixedBias = put('fixed-bias', { layout: 'bias', rows: values.length, columns: { values } });
  const bias = make('bias', { layout: 'bias', rows: block.rows, columns: 1, stride: 1 });
  return { inputs: { ...inputs, fixedBias }, outputs: { ...outputs, bias } };
}

function equationsOf({ block, gram, columns = 0 }: GivenRows, rule: RowRule, put: Put) {
  return {
    gram: put('gram', factorsOf(gram ?? emptyGram(rule.rank), rule.rank)),
    shifts: put('shifts', shiftsOf(block, columns, rule)),
  };
}

function valuesOf({ columns }: Partition): Float32Array {
  return columns.values as Float32Array;
}

/**
 * Allocates memory for a Gram matrix of rank x rank numbers. It has one row for each element of its padded
 * row length (stride), because solvers read that number of rows.
 */
export function emptyGram(rank: number): Float32Array {
  return sharedArray(Float32Array, 16 * Math.ceil(rank / 16) * rank);
}

/** Computes the Gram matrix, weight ΘᵀΘ, of the rows of `factors`. The result has the size of emptyGram. */
export async function gramOf(
  factors: Float32Array,
  { rank, weight }: { readonly rank: number; readonly weight: number },
  device: Device,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  if (factors.length === 0) return emptyGram(rank);
  const { place, strideStep, wholePasses } = device.info;
  const [stage, ref] = ['gram', refsOf('gram')];
  const [all, gram] = [ref('all'), ref('gram')];
  const steps = new StepList(contracts);
  const shape = { rows: 16 * Math.ceil(rank / 16), columns: rank, stride: factorStride(rank, strideStep) };
  steps.allocate(stage, place, gram, shape);
  const task = { inputs: { factors: all }, outputs: { gram }, params: { rank, weight } };
  addSliced(steps, stage, place, { kernel: 'gram', ...task }, gramSlices(rank, wholePasses));
  steps.handOut(stage, gram, place);
  steps.free(stage, place, [all, gram]);
  const { handed } = await runSteps(steps.steps, ctx, { given: [[all, factorsOf(factors, rank), place]] });
  return valuesOf(handed[0]);
}
