import type { JsonObject } from '../../engine/json.ts';
import type { Stage, TaskPlan } from '../../engine/plan/stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { blockBytes } from '../planner/sizes.ts';
import { taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import { biasColumns } from './factors.ts';
import { lambdasOf, type SgdParams, shrinkOf, shrinks } from './params.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

interface Measured {
  readonly profile: RatingsProfile;
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  /** Features of a row. */
  readonly rank: number;
  /** The place of each part of the rows' factors. */
  readonly at: readonly string[];
  /** The device takes a pass in one task. */
  readonly whole: boolean;
}

export function measuring(measured: Measured): Stage[] {
  return measured.schedule.deviceBlocks ? blockErrors(measured) : wholeErrors(measured);
}

/** Errors over all ratings, or over the block of each band. */
function wholeErrors(measured: Measured): Stage[] {
  const { profile, rank, at, whole } = measured;
  const { users, items, ratings, testRatings } = profile;
  const pass = (name: string, task: TaskPlan, count: number): Stage => ({
    name,
    at,
    work: { kind: 'tasks', tasks: [task] },
    kernel: task.kernel,
    tasks: whole ? 1 : taskCount(count),
  });
  const errors = (name: string, block: string, count: number): Stage => ({
    ...pass(name, errorTask(rank, block), count),
    bytesRead: blockBytes(Math.max(users, items), count),
    flops: 2 * count * rank,
  });
  const norms = (side: 'row' | 'column', block: string) =>
    normTasks(measured, side, block).map((task) => pass(stageOf(measured, side), task, ratings));
  return [
    errors(measureStages.train, 'ratings', ratings),
    ...norms('row', 'ratings'),
    ...norms('column', 'column-counts').map((norm) => ({ ...norm, at: at.slice(0, 1) })),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'tests', testRatings)]),
  ];
}

/**
 * A sweep over the blocks in which any device may read any segment. The first that reads a segment measures
 * its norm too.
 */
function blockErrors(measured: Measured): Stage[] {
  const { profile, params, schedule, rank, at } = measured;
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
    normTasks(measured, side, `${side}-counts`).map((task): TaskPlan => ({
      ...partly(task, to),
      stage: stageOf(measured, side),
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

/** A task over the first rows of a part, by the number that the field `to` of the visited block gives. */
function partly(task: TaskPlan, to: string): TaskPlan {
  return { ...task, params: { ...task.params, from: 0 }, takes: { to } };
}

/** The task that measures a side's part of the penalty; none where it has none. */
function normTasks(measured: Measured, side: 'row' | 'column', block: string): TaskPlan[] {
  const { params, rank } = measured;
  const name = sideName(measured, side);
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

function sideName({ schedule }: Measured, side: 'row' | 'column'): 'users' | 'items' {
  return (side === 'row') === (schedule.rows === 'users') ? 'users' : 'items';
}

function stageOf(measured: Measured, side: 'row' | 'column'): string {
  return measureStages[sideName(measured, side)];
}
