import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import type { Partition, PartitionRef, SharedColumn } from '../../engine/partition.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place, SPILL } from '../../engine/plan/place.ts';
import type { DataSet, RowRange, Slice, Stage, TaskPlan } from '../../engine/plan/stages.ts';
import type { Given } from '../../engine/run/run-steps.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { contracts } from '../tasks/tasks.ts';

/** A part of a data set that exists before the first step. `partition` is absent if it is in a file. */
export interface GivenPart {
  readonly ref: PartitionRef;
  readonly partition?: Partition;
}

/** A plan after bindPlan, with the partitions to hand to its first steps. */
export interface BoundRun {
  readonly plan: PhysicalPlan;
  readonly bound: BoundPlan;
  readonly given: readonly Given[];
}

/**
 * Connects a plan, which was made from estimates, with the actual data: sizes and parts of data sets, and
 * parameters of stages that depend on them. `partsOf` returns the parts of a data set that exists before the
 * first step. `taskOf` adds to a task what depends on the ratings. `stageOf` changes a stage further. `startOf`
 * replaces the stages of the start if the factors are given.
 */
export function bindPlan<Set extends DataSet>(
  planned: PhysicalPlan,
  {
    datasets,
    partsOf,
    taskOf,
    stageOf = (stage) => stage,
    startOf = ({ start }) => start,
    ...bound
  }: Pick<BoundPlan, 'name' | 'slices' | 'bands' | 'blockSizes' | 'blockFields'> & {
    readonly datasets: readonly Set[];
    readonly partsOf: (set: Set) => readonly GivenPart[];
    readonly taskOf: (task: TaskPlan, stage: string) => TaskPlan;
    readonly stageOf?: (stage: Stage) => Stage;
    readonly startOf?: ((plan: PhysicalPlan) => readonly Stage[]) | undefined;
  },
): BoundRun {
  const parts = datasets.flatMap((set) => (set.given ? [[set.name, partsOf(set)] as const] : []));
  const stages = (list: readonly Stage[]) =>
    list.map((stage) => stageOf(withTasks(counted(stage, bound.slices[stage.name]), taskOf)));
  const plan: PhysicalPlan = {
    ...planned,
    datasets,
    start: stages(planned.start),
    round: stages(planned.round),
    measure: stages(planned.measure),
  };
  const { devices, round, measure, end, measureBytes } = plan;
  const made: BoundPlan = {
    ...bound,
    devices,
    datasets,
    phases: { start: startOf(plan), round, measure, end },
    given: Object.fromEntries(parts.map(([set, own]) => [set, own.map(({ ref }) => ref)])),
    ...(measureBytes ? { measureBytes } : {}),
  };
  const given = parts.flatMap(([, own]) =>
    own.flatMap(({ ref, partition }): Given[] => (partition ? [[ref, partition]] : [])),
  );
  return { plan: withRealCuts(plan, made), bound: made, given };
}

function withTasks(stage: Stage, taskOf: (task: TaskPlan, stage: string) => TaskPlan): Stage {
  const { name, work } = stage;
  if (work.kind !== 'tasks' && work.kind !== 'blocks') return stage;
  return { ...stage, work: { ...work, tasks: work.tasks.map((task) => taskOf(task, name)) } };
}

/**
 * The stages before the first round if initial factors are given: these data sets are copied from host memory
 * instead of being drawn or set to zero.
 */
export function startFromHost({ start }: PhysicalPlan, data: readonly string[]): Stage[] {
  const draws = start.filter(({ name }) => name.startsWith('initialize'));
  const { name, at } = draws[0];
  return start.flatMap((stage): Stage[] => {
    if (stage === draws[0])
      return [{ name, at, work: { kind: 'exchange', how: 'move', data, to: 'from-host' } }];
    const { work } = stage;
    const isGiven = work.kind === 'allocate' && work.data.every((set) => data.includes(set));
    return isGiven || draws.includes(stage) ? [] : [stage];
  });
}

function counted(stage: Stage, own: readonly (readonly Slice[])[] | undefined): Stage {
  return own === undefined ? stage : { ...stage, tasks: Math.max(...own.map((ranges) => ranges.length)) };
}

/**
 * Computes the plan's memory again for the actual parts: they are balanced by ratings, so their numbers of
 * rows differ from the plan's.
 */
function withRealCuts(plan: PhysicalPlan, bound: BoundPlan): PhysicalPlan {
  if (plan.datasets.every(({ parts }) => parts.length === 1)) return plan;
  const peak = peakOf(bound, contracts, plan.keep);
  const larger = (place: Place) =>
    plan.memory[place] === undefined && peak[place] === undefined
      ? {}
      : { [place]: Math.max(plan.memory[place] ?? 0, peak[place] ?? 0) };
  return {
    ...plan,
    memory: { ...plan.memory, ...peak, ...larger(HOST), ...larger(SPILL) },
  };
}

/** Cuts columns of rows in host memory into parts. */
export function cutRows(
  name: string,
  ranges: readonly RowRange[],
  layout: string,
  columns: Readonly<Record<string, SharedColumn>>,
): GivenPart[] {
  return ranges.map(({ from, to }, partition) => {
    const own = Object.entries(columns).map(([column, values]) => [column, values.subarray(from, to)]);
    return {
      ref: { name, partition, version: 0 },
      partition: { layout, rows: to - from, columns: Object.fromEntries(own) },
    };
  });
}

/**
 * Hashes of the ids, cut into parts, from which the initial factors of a side are drawn. Empty if the factors
 * are given.
 */
export function cutKeys(name: string, ranges: readonly RowRange[], ids?: KeyColumn): GivenPart[] {
  const none = new Uint32Array(0);
  return cutRows(
    name,
    ranges,
    'key-hashes',
    ids === undefined ? { low: none, high: none } : { ...keyHashes(ids) },
  );
}
