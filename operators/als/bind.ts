import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import type { JsonObject } from '../../engine/json.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../engine/partition.ts';
import { type BoundPlan, partRef } from '../../engine/plan/bound-plan.ts';
import { type PhysicalPlan, stageNamed } from '../../engine/plan/physical-plan.ts';
import type { DataPart, DataSet, RowRange, Stage } from '../../engine/plan/stages.ts';
import { blockBytes } from '../planner/sizes.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from '../ratings/rating-block.ts';
import { balancedRanges, taskCount } from '../ratings/row-ranges.ts';
import { measureStages } from '../training/loss.ts';
import { gramSlices, implicitNames, implicitStages, rankSlices, TEST_PLACES } from './implicit/stages.ts';
import { gridOf } from './plan/grid.ts';
import { startNorm } from './rating-unit.ts';

export interface AlsData {
  readonly byUser: RatingBlock;
  readonly byItem: RatingBlock;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Known pairs of the validation set by user, at the positions of the training set; of implicit data those to be ranked. */
  readonly test?: RatingBlock;
  /** Of implicit data: the number added to the diagonal of each row, see rowShifts. */
  readonly shifts?: Readonly<Record<'users' | 'items', Float32Array>>;
}

/** One side's factors in host memory. */
export interface TrainedSide {
  /** rows x rank. */
  readonly values: Float32Array;
  readonly bias?: Float32Array;
}

/** The factors with which training begins. */
export interface AlsStart {
  readonly users: TrainedSide;
  readonly items: TrainedSide;
}

export interface BoundAls {
  /** The plan with the cuts and the counts of the data. */
  readonly plan: PhysicalPlan;
  readonly bound: BoundPlan;
  readonly given: readonly (readonly [PartitionRef, Partition])[];
}

/** Parameters that depend on the ratings. */
export interface BoundParams {
  readonly biases: boolean;
  /** μ with biases, else 0. */
  readonly mean: number;
  /** o of λ n^ν + o, in the ratings' unit. */
  readonly offset: number;
  /** The unit of the ratings: see ratingUnit. */
  readonly unit: number;
}

/**
 * Binds a plan to sorted ratings: each side is cut by its ratings into as many parts as the plan has, and each part's passes into
 * slices.
 */
export function bindAls(planned: PhysicalPlan, data: AlsData, { biases, mean, offset, unit }: BoundParams, start?: AlsStart): BoundAls {
  const grid = gridOf(planned);
  const parts = (offsets: Int32Array, q: number) => balancedRanges(offsets, q, undefined, { exactly: true });
  const cuts = { users: parts(data.byUser.offsets, grid.users.q), items: parts(data.byItem.offsets, grid.items.q) };
  const name = dataSetName('als');
  const given: [PartitionRef, Partition][] = [];
  const refs: Record<string, PartitionRef[]> = {};
  const sets = new Map<string, DataSet>(planned.datasets.map((set) => [set.name, set]));
  const setParts = (set: string, part: (part: DataPart, j: number) => Partial<DataPart>) => {
    const found = sets.get(set);
    if (found) sets.set(set, { ...found, parts: found.parts.map((one, j) => ({ ...one, ...part(one, j) })) });
  };
  const give = (set: string, parts: readonly { readonly ref: PartitionRef; readonly partition: Partition }[]) => {
    refs[set] = parts.map(({ ref }) => ref);
    given.push(...parts.map(({ ref, partition }) => [ref, partition] as const satisfies [PartitionRef, Partition]));
  };
  const giveBlock = (set: string, whole: RatingBlock, ranges: readonly RowRange[]): RatingBlock[] => {
    const parts = ranges.length === 1 ? [whole] : ranges.map(({ from, to }, partition) => rowsOfBlock(whole, from, to, { name: `${name}/${set}`, partition, version: 0 }));
    give(set, parts.map((block) => ({ ref: block.ref, partition: hostForm(block) })));
    setParts(set, (_, j) => ({ rows: parts[j].rows, bytes: blockBytes(parts[j].rows, parts[j].ratings) }));
    return parts;
  };
  const blocks = { users: giveBlock('ratings-by-user', data.byUser, cuts.users), items: giveBlock('ratings-by-item', data.byItem, cuts.items) };
  for (const side of ['users', 'items'] as const) {
    const set = implicitNames(side).shifts;
    const shifts = data.shifts?.[side];
    if (shifts === undefined) continue;
    give(set, cuts[side].map(({ from, to }, partition) => ({ ref: { name: `${name}/${set}`, partition, version: 0 }, partition: { layout: 'row-shifts', rows: to - from, columns: { values: shifts.subarray(from, to) } } })));
    setParts(set, (_, j) => ({ rows: cuts[side][j].to - cuts[side][j].from, bytes: 4 * (cuts[side][j].to - cuts[side][j].from) }));
  }
  const tests = data.test && sets.has('test-ratings') ? giveBlock('test-ratings', data.test, cuts.users) : [];
  setParts(TEST_PLACES, (_, j) => ({ rows: tests[j].ratings, bytes: 4 * tests[j].ratings }));
  for (const side of ['users', 'items'] as const) {
    for (const set of [side, `${side}-bias`]) setParts(set, (_, j) => ({ rows: cuts[side][j].to - cuts[side][j].from }));
  }
  // A given start needs no keys.
  const { low, high } = start === undefined ? keyHashes(data.users) : { low: new Uint32Array(0), high: new Uint32Array(0) };
  const keys = cuts.users.map(({ from, to }, partition) => ({ ref: { name: `${name}/keys`, partition, version: 0 }, partition: { layout: 'key-hashes', rows: to - from, columns: { low: low.subarray(from, to), high: high.subarray(from, to) } } }));
  give('users-keys', keys);
  setParts('users-keys', (_, j) => ({ rows: keys[j].partition.rows, bytes: 8 * keys[j].partition.rows }));
  const computing = [...new Set(stageNamed(planned, 'update-users').at)];
  const whole = planned.devices.find(({ place }) => place === computing[0])?.wholePasses ?? false;
  const cut = (parts: readonly RatingBlock[]) => parts.map((block) => (whole ? balancedRanges(block.offsets, 1) : balancedRanges(block.offsets, taskCount(block.ratings))));
  const [byUser, byItem, byTest] = [blocks.users, blocks.items, tests].map(cut);
  const grams = computing.map(() => gramSlices(Number(planned.params.rank), whole));
  const slices: Record<string, RowRange[][]> = {
    initialize: blocks.users.map((block) => balancedRanges(block.offsets, taskCount(block.ratings))),
    'update-users': byUser,
    'update-items': byItem,
    [measureStages.train]: byUser,
    [measureStages.users]: byUser,
    [measureStages.items]: byItem,
    [measureStages.test]: byTest,
    ...(data.shifts ? { [implicitStages.error]: byUser, [implicitStages.ranks]: blocks.users.map(({ rows }) => rankSlices(rows, whole)), 'gram-users': grams, 'gram-items': grams } : {}),
  };
  const ofRatings: Readonly<Record<string, (params: JsonObject) => JsonObject>> = {
    initialize: ({ nonnegative }) => (unit === 1 || nonnegative ? {} : { norm: startNorm(unit) }),
    update: ({ lambda }) => ({ ...(biases ? { mean } : {}), ...(offset === 0 ? {} : { offset }), ...(unit === 1 ? {} : { lambda: (lambda as number) / unit, ...(biases ? { biasLambda: lambda } : {}) }) }),
    'squared-error': () => (biases ? { mean } : {}),
  };
  const withRatings = (stage: Stage): Stage => (stage.work.kind === 'tasks' ? { ...stage, work: { kind: 'tasks', tasks: stage.work.tasks.map((task) => ({ ...task, params: { ...task.params, ...ofRatings[task.kernel]?.(task.params ?? {}) } })) } } : stage);
  const counted = (stage: Stage): Stage => (slices[stage.name] === undefined ? stage : { ...stage, tasks: Math.max(...slices[stage.name].map((ranges) => ranges.length)) });
  const stages = (list: readonly Stage[]) => list.map((stage) => counted(withRatings(stage)));
  const plan: PhysicalPlan = { ...planned, datasets: [...sets.values()], start: stages(planned.start), round: stages(planned.round), measure: stages(planned.measure) };
  const phases = { start: start === undefined ? plan.start : startFrom(plan), round: plan.round, measure: plan.measure, end: plan.end };
  const bound: BoundPlan = { name, devices: plan.devices, datasets: plan.datasets, phases, given: refs, slices };
  return { plan, bound, given: start === undefined ? given : [...given, ...givenFactors(bound, start, cuts)] };
}

/** The stages of a given start: its factors come from the host in place of drawn ones and of zeros. */
function startFrom({ start, datasets }: PhysicalPlan): Stage[] {
  const names = datasets.filter(({ given, derived }) => !given && !derived).map(({ name }) => name);
  return start.flatMap((stage): Stage[] => {
    if (stage.name === 'initialize') return [{ name: stage.name, at: stage.at, work: { kind: 'exchange', how: 'move', data: names, to: 'from-host' } }];
    return stage.work.kind === 'allocate' ? [] : [stage];
  });
}

function givenFactors(bound: BoundPlan, start: AlsStart, cuts: Readonly<Record<'users' | 'items', readonly RowRange[]>>): [PartitionRef, Partition][] {
  const set = (name: string) => bound.datasets.find((one) => one.name === name) as DataSet;
  return (['users', 'items'] as const).flatMap((side) => {
    const { values, bias } = start[side];
    const f = set(side).columns ?? 1;
    return cuts[side].flatMap(({ from, to }, partition): [PartitionRef, Partition][] => {
      const part = (name: string, layout: string, column: Float32Array): [PartitionRef, Partition] => [partRef(bound, set(name), partition, 0), { layout, rows: to - from, columns: { values: column } }];
      return [part(side, 'factors', values.subarray(from * f, to * f)), ...(bias ? [part(`${side}-bias`, 'bias', bias.slice(from, to))] : [])];
    });
  });
}
