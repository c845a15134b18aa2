import { type PartitionRef, partitionKey } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import { HOST, SPILL } from '../../../engine/plan/place.ts';
import { useOf, type DataSet } from '../../../engine/plan/stages.ts';
import type { Step } from '../../../engine/run/step.ts';

type TaskStep = Extract<Step['do'], { readonly kind: 'task' }>;

interface Access {
  readonly step: number;
  readonly place: string;
  readonly ref: PartitionRef;
  readonly writes: boolean;
  /** Bands of a matrix in one part that a task over a grid steps; undefined: the whole. */
  readonly band?: number;
}

/** For each step: the steps that must come before it, through any number of edges, as bits. */
export function predecessors(steps: readonly Step[]): bigint[] {
  const behind: bigint[] = [];
  for (const { id, after, ended } of steps) {
    let bits = 0n;
    for (const before of [...after, ...ended]) bits |= behind[before] | (1n << BigInt(before));
    behind[id] = bits;
  }
  return behind;
}

/** The partitions that a step reads and writes, derived from the step alone. */
export function accessesOf({ id, at, do: action }: Step, bound: BoundPlan): Access[] {
  const access = (place: string, ref: PartitionRef, writes: boolean, band?: number): Access => ({
    step: id,
    place,
    ref,
    writes,
    ...(band === undefined ? {} : { band }),
  });
  switch (action.kind) {
    case 'task': {
      const { inputs, outputs } = action.task;
      // Rows are placed side by side.
      const bands =
        action.task.kernel === 'place-rows'
          ? () => Number(action.task.params.rowFrom)
          : bandsOf(inputs.block, outputs, bound);
      return [
        ...Object.values(inputs).map((ref) => access(at, ref, false)),
        ...Object.values(outputs).map((ref) => access(at, ref, true, bands(ref))),
      ];
    }
    case 'allocate':
      return [access(at, action.ref, true)];
    case 'move':
      return [access(action.from, action.ref, false), access(action.to, action.as, true)];
    case 'hand-out':
      return [access(at, action.ref, false)];
    case 'spill':
    case 'free':
      return action.refs.map((ref) => access(at, ref, true));
  }
}

/**
 * A task that steps block (i, j) of a grid touches band i of the rows and band j of the columns, where those
 * are one part.
 */
function bandsOf(
  block: PartitionRef | undefined,
  outputs: Readonly<Record<string, PartitionRef>>,
  bound: BoundPlan,
): (ref: PartitionRef) => number | undefined {
  const columns = bound.bands?.columns.length ?? 1;
  const blocks = block && bound.given.blocks?.findIndex((ref) => partitionKey(ref) === partitionKey(block));
  if (blocks === undefined || blocks < 0 || outputs.rows === undefined) return () => undefined;
  return (ref) => {
    const set = setOf(ref, bound);
    if (set === undefined || set.parts.length > 1) return undefined;
    return set.by === 'row'
      ? Math.floor(blocks / columns)
      : set.by === 'column'
        ? blocks % columns
        : undefined;
  };
}

/** The place of a partition that exists before the first step. */
function homeOf(ref: PartitionRef, bound: BoundPlan): string {
  const set = setOf(ref, bound);
  return set?.given && set.parts[partOf(ref, bound)].at[0] === SPILL ? SPILL : HOST;
}

export function setOf(ref: PartitionRef, bound: BoundPlan): DataSet | undefined {
  return bound.datasets.find((set) =>
    set.given
      ? bound.given[set.name]?.some((one) => partitionKey(one) === partitionKey(ref))
      : `${bound.name}/${set.name}` === ref.name,
  );
}

/** Errors in the edges of a list: readers must come after writers, and writers after readers and writers. */
export function checkEdges(steps: readonly Step[], bound: BoundPlan): string[] {
  const problems: string[] = [];
  let edges = 0;
  for (const { id, after, ended } of steps) {
    edges += after.length + ended.length;
    for (const before of [...after, ...ended])
      if (before >= id) problems.push(`step ${id} waits for step ${before}`);
    if (new Set([...after, ...ended]).size < after.length + ended.length)
      problems.push(`step ${id} waits twice for a step`);
  }
  const bands = (bound.bands?.rows.length ?? 1) + (bound.bands?.columns.length ?? 1);
  if (edges > 8 * steps.length + 4 * bands) problems.push(`${edges} edges for ${steps.length} steps`);
  return [...problems, ...unorderedAccesses(steps, bound)];
}

/** Accesses to one partition that no edges order, where one of them writes. */
function unorderedAccesses(steps: readonly Step[], bound: BoundPlan): string[] {
  const problems: string[] = [];
  const behind = predecessors(steps);
  const byKey = new Map<string, Access[]>();
  for (const step of steps) {
    for (const access of accessesOf(step, bound)) {
      const key = `${access.place} ${partitionKey(access.ref)}`;
      for (const other of byKey.get(key) ?? []) {
        if (other.step === access.step || (!other.writes && !access.writes)) continue;
        if (other.band !== undefined && access.band !== undefined && other.band !== access.band) continue;
        if ((behind[access.step] & (1n << BigInt(other.step))) === 0n)
          problems.push(
            `${describe(steps[access.step])} does not come behind ${describe(steps[other.step])}, for ${key}`,
          );
      }
      byKey.set(key, [...(byKey.get(key) ?? []), access]);
    }
  }
  return problems;
}

export function describe({ id, stage, at, do: action }: Step): string {
  return `step ${id} (${stage}, ${action.kind === 'task' ? action.task.kernel : action.kind}, ${at})`;
}

/**
 * Slices of each task over rows cover these rows once, and a stage visits each block that has ratings once
 * with each kernel.
 */
export function checkCoverage(steps: readonly Step[], bound: BoundPlan): string[] {
  const problems: string[] = [];
  const visited = new Map<string, number>();
  /** Rows that several devices solve, each for itself: the places of their blocks. */
  const common = new Map<string, string[]>();
  for (const step of steps) {
    if (step.do.kind !== 'task') continue;
    const { task } = step.do;
    if (bound.slices[step.stage] !== undefined) problems.push(...sliceProblems(step, step.do, bound));
    const { block } = task.inputs;
    const places =
      block === undefined
        ? []
        : (setOf(block, bound)?.parts[partOf(block, bound)].at ?? []).filter((place) => place !== HOST);
    if (block !== undefined && places.length > 1 && task.outputs.factors !== undefined) {
      const key = `${step.stage} ${task.kernel} ${partitionKey(block)} on ${places.join(', ')}`;
      common.set(key, [...(common.get(key) ?? []), step.at]);
    } else if (block !== undefined)
      visited.set(
        `${step.stage} ${task.kernel} ${partitionKey(block)}`,
        (visited.get(`${step.stage} ${task.kernel} ${partitionKey(block)}`) ?? 0) + 1,
      );
  }
  for (const [key, places] of common)
    if (!key.endsWith(` on ${places.join(', ')}`)) problems.push(`${key}: solved on ${places.join(', ')}`);
  return [...problems, ...visitProblems(steps, bound, visited)];
}

/** Slices of a task that do not cover its rows once. */
function sliceProblems(step: Step, { task, slices }: TaskStep, bound: BoundPlan): string[] {
  const problems: string[] = [];
  let next = 0;
  for (const { from, to } of slices) {
    if (from !== next) problems.push(`${describe(step)}: a slice begins at ${from}, not at ${next}`);
    next = Number(to);
  }
  const rows = task.kernel === 'sgd-block' ? next : rowsOf(task, bound);
  if (next !== rows) problems.push(`${describe(step)}: slices end at ${next} of ${rows} rows`);
  return problems;
}

function rowsOf({ kernel, params, inputs, outputs }: TaskStep['task'], bound: BoundPlan): number | undefined {
  // G has a row for each feature.
  if (kernel === 'gram') return Number(params.rank);
  const { block, listed, source, keys, shifts } = inputs;
  const over = [block, listed, source, keys, shifts, outputs.factors, outputs.gram].find(
    (ref) => ref !== undefined,
  );
  return over && setOf(over, bound)?.parts[partOf(over, bound)].rows;
}

/** Blocks that a stage does not visit the expected number of times. */
function visitProblems(
  steps: readonly Step[],
  bound: BoundPlan,
  visited: ReadonlyMap<string, number>,
): string[] {
  const problems: string[] = [];
  const repeats = new Map(
    Object.values(bound.phases)
      .flat()
      .map(({ name, repeats: own }) => [name, own?.times ?? 1]),
  );
  for (const [key, times] of visited)
    if (times !== (repeats.get(key.split(' ')[0]) ?? 1)) problems.push(`${key}: visited ${times} times`);
  return [...problems, ...blockProblems(steps, bound, visited)];
}

/** Blocks with ratings that a stage over a grid does not visit once, and visits of empty ones. */
function blockProblems(
  steps: readonly Step[],
  bound: BoundPlan,
  visited: ReadonlyMap<string, number>,
): string[] {
  const problems: string[] = [];
  for (const [phase, stages] of Object.entries(bound.phases)) {
    for (const { name, work } of stages) {
      if (work.kind !== 'blocks' || !steps.some(({ stage }) => stage === name)) continue;
      const sizes = bound.blockSizes?.[work.grid.of].flat() ?? [];
      const stepping = work.tasks.find(({ uses }) => uses.block === work.grid.of || uses.block === 'lists');
      const kernel = stepping?.kernel;
      const refs = bound.given[stepping ? useOf(stepping.uses.block).set : ''] ?? [];
      sizes.forEach((size, at) => {
        const times = visited.get(`${name} ${kernel} ${partitionKey(refs[at])}`) ?? 0;
        if (times !== (size > 0 ? 1 : 0))
          problems.push(`${phase} ${name}: block ${at} of ${size} ratings is visited ${times} times`);
      });
    }
  }
  return problems;
}

function partOf(ref: PartitionRef, bound: BoundPlan): number {
  const set = setOf(ref, bound);
  return set?.given
    ? (bound.given[set.name].findIndex((one) => partitionKey(one) === partitionKey(ref)) ?? 0)
    : ref.partition;
}

/** The partitions that exist while lists are added one after the other, and the errors found in them. */
export class LiveSet {
  readonly alive = new Set<string>();
  readonly problems: string[] = [];
  readonly #bound: BoundPlan;

  constructor(bound: BoundPlan, given: readonly PartitionRef[]) {
    this.#bound = bound;
    for (const ref of given) this.alive.add(`${homeOf(ref, bound)} ${partitionKey(ref)}`);
  }

  add(steps: readonly Step[]): void {
    for (const step of steps) {
      for (const { place, ref, writes } of accessesOf(step, this.#bound)) {
        const key = `${place} ${partitionKey(ref)}`;
        if (step.do.kind === 'free') {
          // Derived data sets have their newest version only, and no orders of blocks without ratings.
          if (!this.alive.delete(key) && !setOf(ref, this.#bound)?.derived)
            this.problems.push(`${describe(step)} frees ${key}, which is not there`);
        } else if (!writes) {
          if (!this.alive.has(key)) this.problems.push(`${describe(step)} reads ${key}, which is not there`);
        } else {
          if (step.do.kind === 'allocate' && this.alive.has(key))
            this.problems.push(`${describe(step)} allocates ${key} again`);
          if (
            step.do.kind === 'task' &&
            setOf(ref, this.#bound)?.columns !== undefined &&
            !this.alive.has(key)
          )
            this.problems.push(`${describe(step)} writes ${key}, which is not there`);
          this.alive.add(key);
        }
      }
    }
  }
}
