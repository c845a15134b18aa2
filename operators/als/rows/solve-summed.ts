import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { Partition } from '../../../engine/partition.ts';
import { factorStride } from '../../planner/sizes.ts';
import { type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import type { SolverChoice } from '../../tasks/task-types.ts';
import { contracts } from '../../tasks/tasks.ts';
import { chunksOf } from './solve-in-place.ts';
import {
  factorsOf,
  outcomeOf,
  refsOf,
  type RowRule,
  shiftsOf,
  slicesOf,
  type SolveOutcome,
} from './solve-rows.ts';

/**
 * Rows whose equations are summed already. `sums`: for each row its A, b and number of ratings (see
 * equationLayout), without regularization. `block`: the rows' ratings, of which only the numbers are read.
 */
export interface SummedRows {
  readonly block: RatingBlock;
  readonly columns: number;
  readonly sums: Float32Array;
  /** For implicit data the Gram matrix of the whole fixed side, else not read. */
  readonly gram: Float32Array;
  readonly fromZeros: boolean;
}

interface SummedSolving {
  readonly stage: string;
  readonly rule: RowRule;
  readonly solver: SolverChoice;
  readonly device: Device;
}

/**
 * Solves rows from the sums of their equations, and writes them over `own`, the rows before. Regularization and
 * the Gram matrix are added here, once. Some rows at a time are on the device. After a row without a finite
 * solution the rows of later chunks are unchanged.
 */
export async function solveSummed(
  own: Float32Array,
  rows: SummedRows,
  solving: SummedSolving,
  ctx: ExecutionContext,
): Promise<SolveOutcome> {
  const { rank } = solving.rule;
  let objective = 0;
  const columns = equationColumns(rank, false);
  for (const { from, to } of chunksOf(rows.block.rows, columns)) {
    const block = rowsOfBlock(rows.block, from, to, refsOf(solving.stage)('block'));
    const sums = rows.sums.subarray(from * columns, to * columns);
    const before = own.subarray(from * rank, to * rank);
    const solved = await solveChunk(before, { ...rows, block, sums }, solving, ctx);
    objective += solved.objective;
    if (solved.badRow >= 0) return { badRow: from + solved.badRow, objective };
  }
  return { badRow: -1, objective };
}

async function solveChunk(
  own: Float32Array,
  { block, columns, sums, gram, fromZeros }: SummedRows,
  { stage, rule, solver, device }: SummedSolving,
  ctx: ExecutionContext,
): Promise<SolveOutcome> {
  const { implicit, nonnegative: _, ...regularization } = rule;
  const { rank } = rule;
  const { place, strideStep } = device.info;
  const ref = refsOf(stage);
  const steps = new StepList(contracts);
  const given: Given[] = [];
  const put = (part: string, partition: Partition) => {
    given.push([ref(part), partition, place]);
    return ref(part);
  };
  const make = (part: string) => {
    const shape = { rows: block.rows, columns: rank, stride: factorStride(rank, strideStep) };
    steps.allocate(stage, place, ref(part), shape);
    return ref(part);
  };
  const inputs = {
    equations: put('equations', factorsOf(sums, equationColumns(rank, false))),
    previous: fromZeros ? make('previous') : put('previous', factorsOf(own, rank)),
    ...(implicit && {
      gram: put('gram', factorsOf(gram, rank)),
      shifts: put('shifts', shiftsOf(block, columns, rule)),
    }),
  };
  const outputs = { factors: make('factors') };
  const params = { ...regularization, ...solver };
  const task = { kernel: 'solve-equations' as const, inputs, outputs, params };
  addSliced(steps, stage, place, task, slicesOf(block, device));
  steps.handOut(stage, outputs.factors, place);
  steps.free(stage, place, [...Object.values(inputs), outputs.factors]);
  const results = await runSteps(steps.steps, ctx, { given });
  own.set(results.handed[0].columns.values as Float32Array);
  return outcomeOf(valuesOfStage(results, stage, 'solve-equations'));
}
