import {
  type MatrixShape,
  type Partition,
  type PartitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, type RatingBlock } from '../../ratings/ratings.ts';
import { balancedRanges, taskCount } from '../../ratings/row-ranges.ts';
import { TaskRun, valuesOfStage } from '../../tasks/run-tasks.ts';
import type { RowSolving } from '../../tasks/search-tasks.ts';
import type { RowRegularization, SolverChoice, Tiling, VariantChoice } from '../../tasks/task-types.ts';
import type { ImplicitWeights } from '../../tasks/tasks.ts';
import { gramSlices } from '../implicit/stages.ts';
import { rowShifts } from '../implicit/weights.ts';
import { type ReportedObjective, sumOfObjectives } from '../solved-loss.ts';
import { tiledSlices } from '../tiles.ts';

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
  /** Factors, and with biases the biases, to which the rows are drawn; default: zeros. */
  readonly prior?: Float32Array | undefined;
  readonly priorBias?: Float32Array | undefined;
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
export type RowsSolver = SolverChoice & VariantChoice & { readonly tiled?: Tiling };

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

/** A run of tasks that solve rows or sum over them. */
export class RowsRun extends TaskRun {
  readonly #strideStep: number;

  constructor(stage: string, { info }: Device, ctx: ExecutionContext) {
    super(ctx, stage, info.place);
    this.#strideStep = info.strideStep;
  }

  /** Sends factors to the device, unless they are there already. */
  factors(part: string, values: Float32Array | PlacedFactors, rank: number): PartitionRef {
    return 'ref' in values ? values.ref : this.send(part, factorsOf(values, rank));
  }

  /** Allocates a matrix of zeros. */
  matrix(part: string, rows: number, columns: number, more: Partial<MatrixShape> = {}): PartitionRef {
    const stride = factorStride(columns, this.#strideStep);
    return this.make(this.ref(part), { rows, columns, stride, ...more });
  }
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
  const {
    block,
    placed,
    fixed,
    fixedBiases,
    previous,
    prior,
    priorBias,
    into,
    gram,
    columns: all = 0,
  } = rows;
  const { rank, mean } = rule;
  const columns = 'ref' in fixed ? fixed.rows : fixed.length / rank;
  const run = new RowsRun(stage, device, ctx);
  if (!placed) run.send(block.ref, hostForm(block));
  const inputs = {
    block: block.ref,
    fixed: run.factors('fixed', fixed, rank),
    previous: previous
      ? run.send('previous', factorsOf(previous, rank))
      : run.matrix('previous', block.rows, rank),
    ...(prior && { prior: run.send('prior', factorsOf(prior, rank)) }),
  };
  const factors = run.matrix('factors', block.rows, rank);
  const tiled = { tiling: solver.tiled, fixedRows: columns, parallelism: device.info.parallelism };
  const slices = tiledSlices(block.offsets, slicesOf(block, device), tiled);
  const solving = solvingOf(rule, solver);
  const outputs = [factors];
  if (solving.kernel === 'update-implicit') {
    const equations = {
      gram: run.send('gram', factorsOf(gram ?? emptyGram(rank), rank)),
      shifts: run.send('shifts', shiftsOf(block, all, rule)),
    };
    run.sliced({ ...solving, inputs: { ...inputs, ...equations }, outputs: { factors } }, slices);
  } else if (mean === undefined) run.sliced({ ...solving, inputs, outputs: { factors } }, slices);
  else {
    const sendBias = (part: string, values: Float32Array) =>
      run.send(part, { layout: 'bias', rows: values.length, columns: { values } });
    const biases = {
      fixedBias: sendBias('fixed-bias', fixedBiases ?? sharedArray(Float32Array, columns)),
      ...(priorBias && { priorBias: sendBias('prior-bias', priorBias) }),
    };
    const bias = run.matrix('bias', block.rows, 1, { layout: 'bias', stride: 1 });
    outputs.push(bias);
    run.sliced({ ...solving, inputs: { ...inputs, ...biases }, outputs: { factors, bias } }, slices);
  }
  outputs.forEach((ref, at) => run.handOut(ref, at === 0 ? into : undefined));
  const results = await run.end();
  const [solved, biases] = results.handed;
  return {
    factors: valuesOf(solved),
    ...(biases && { biases: valuesOf(biases) }),
    ...outcomeOf(valuesOfStage(results, stage, solving.kernel)),
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

/** The task that solves rows by a rule, without its inputs and outputs. */
export function solvingOf({ implicit, nonnegative, ...explicit }: RowRule, choice: RowsSolver): RowSolving {
  const solver = { ...choice, ...(nonnegative ? { exact: 'nonnegative' as const } : {}) };
  if (!implicit) return { kernel: 'update', params: { ...explicit, ...solver } };
  const { rank } = explicit;
  const { alpha, base } = implicit;
  return { kernel: 'update-implicit', params: { rank, alpha, base, ...solver } };
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
  const run = new RowsRun('gram', device, ctx);
  const inputs = { factors: run.send('all', factorsOf(factors, rank)) };
  const gram = run.matrix('gram', 16 * Math.ceil(rank / 16), rank);
  const task = { kernel: 'gram', inputs, outputs: { gram }, params: { rank, weight } } as const;
  run.sliced(task, gramSlices(rank, device.info.wholePasses));
  run.handOut(gram);
  const { handed } = await run.end();
  return valuesOf(handed[0]);
}
