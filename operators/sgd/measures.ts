import type { JsonObject } from '../../engine/json.ts';
import type { Stage, TaskPlan } from '../../engine/plan/stages.ts';
import { blockBytes } from '../planner/sizes.ts';
import { taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import { biasColumns } from './factors.ts';
import { lambdasOf, shrinkOf, shrinks } from './params.ts';
import type { SgdProblem } from './problem.ts';

export function measuring(problem: SgdProblem): Stage[] {
  return problem.schedule.deviceBlocks ? blockErrors(problem) : wholeErrors(problem);
}

/**
 * Stages that measure errors and norms if a device holds all columns: over all ratings, or over each band of
 * rows.
 */
function wholeErrors(problem: SgdProblem): Stage[] {
  const { profile, features: rank, rowPlaces: at, device } = problem;
  const { users, items, ratings, testRatings } = profile;
  const pass = (name: string, task: TaskPlan, count: number): Stage => ({
    name,
    at,
    work: { kind: 'tasks', tasks: [task] },
    kernel: task.kernel,
    tasks: device.wholePasses ? 1 : taskCount(count),
  });
  const errors = (name: string, block: string, count: number): Stage => ({
    ...pass(name, errorTask(rank, block), count),
    bytesRead: blockBytes(Math.max(users, items), count),
    flops: 2 * count * rank,
  });
  const norms = (side: 'row' | 'column', block: string) =>
    normTasks(problem, side, block).map((task) => pass(stageOf(problem, side), task, ratings));
  return [
    errors(measureStages.train, 'ratings', ratings),
    ...norms('row', 'ratings'),
    ...norms('column', 'column-counts').map((norm) => ({ ...norm, at: at.slice(0, 1) })),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'tests', testRatings)]),
  ];
}

/**
 * Stages that measure errors and norms by visiting all blocks of a grid. Any device may read any segment of
 * columns; the first one that reads it also measures its norm.
 */
function blockErrors(problem: SgdProblem): Stage[] {
  const { profile, params, schedule, features: rank, rowPlaces: at } = problem;
  const { rowBands: rows, columnBands: columns, deviceBlocks } = schedule;
  const sweep = (name: string, of: string, count: number, more: readonly TaskPlan[]): Stage => ({
    name,
    at,
    work: {
      kind: 'blocks',
      order: 'rotated',
      seed: params.seed,
      grid: { rows, columns, of },
      tasks: [partly(errorTask(rank, of), 'rowCount'), ...more],
    },
    kernel: 'squared-error',
    tasks: rows * columns,
    partitions: { p: columns, q: rows },
    flops: 2 * count * rank,
  });
  const norms = (side: 'row' | 'column', to: string) =>
    normTasks(problem, side, `${side}-counts`).map((task): TaskPlan => ({
      ...partly(task, to),
      stage: stageOf(problem, side),
      once: side,
    }));
  const share: Stage = {
    name: 'share-columns',
    at,
    work: { kind: 'exchange', how: 'share', data: ['columns'] },
    exchange: 'by turns',
  };
  const { ratings, testRatings } = profile;
  const passes = deviceBlocks?.resident && deviceBlocks.bandsADevice === undefined && rows > 1;
  return [
    ...(passes ? [share] : []),
    sweep(measureStages.train, 'blocks', ratings, [...norms('row', 'rowCount'), ...norms('column', 'width')]),
    ...(testRatings === undefined ? [] : [sweep(measureStages.test, 'tests', testRatings, [])]),
  ];
}

function errorTask(rank: number, block: string): TaskPlan {
  const uses = { block, rowFactors: 'rows', columnFactors: 'columns' };
  return { kernel: 'squared-error', uses, params: { rank } };
}

/**
 * The task, limited to the first rows of a part, since all segments are stored as wide as the widest. `to`:
 * name of the field of the visited block that has the number of rows.
 */
function partly(task: TaskPlan, to: string): TaskPlan {
  return { ...task, params: { ...task.params, from: 0 }, takes: { to } };
}

/** Tasks that measure the norms of a side for the penalty; empty if the side has no penalty. */
function normTasks(problem: SgdProblem, side: 'row' | 'column', block: string): TaskPlan[] {
  const { params, features: rank } = problem;
  const name = sideName(problem, side);
  const task = (more: JsonObject): TaskPlan[] => [
    { kernel: 'weighted-norm', uses: { block, factors: `${side}s` }, params: { rank, ...more } },
  ];
  if (!shrinks(params, name)) return lambdasOf(params)[name] === 0 ? [] : task({});
  const { offset, damping } = shrinkOf(params)[name];
  if (!params.biases) return task({ plainWeights: [offset, offset, offset] });
  return task({
    plainWeights: biasColumns(side === 'row').own === 0 ? [damping, 0, offset] : [0, damping, offset],
  });
}

function sideName({ schedule }: SgdProblem, side: 'row' | 'column'): 'users' | 'items' {
  return (side === 'row') === (schedule.rows === 'users') ? 'users' : 'items';
}

function stageOf(problem: SgdProblem, side: 'row' | 'column'): string {
  return measureStages[sideName(problem, side)];
}
