import { type BoundPlan, dataSetOf, type Versions } from '../plan/bound-plan.ts';
import type { DataSet, PhaseName, Stage, Work } from '../plan/stages.ts';
import type { Place } from '../plan/place.ts';
import { allGather } from './exchanges/all-gather.ts';
import { moveFromHost, moveToPlaces, moveToResults } from './exchanges/move.ts';
import type { Reduction } from './exchanges/reduce.ts';
import { reduceScatter } from './exchanges/reduce-scatter.ts';
import { reduceToOne } from './exchanges/reduce-to-one.ts';
import { type Round, shapeAt, Visits } from './expand/visits.ts';
import { WrittenVersions } from './expand/written-versions.ts';
import type { Step, TaskContracts } from './step.ts';
import { StepList } from './step-list.ts';

export type { Round } from './expand/visits.ts';

export interface Expanded {
  readonly steps: readonly Step[];
  /** The newest versions after these steps. */
  readonly versions: Versions;
}

/**
 * The steps of one phase of a plan: a pure function. Versions that a round replaces are freed behind their last reader, unless `keep`
 * names them; those that a measure makes end with it.
 */
export function expand(bound: BoundPlan, contracts: TaskContracts, phase: PhaseName, versions: Versions, round: Round = { number: 0 }, keep: readonly Versions[] = []): Expanded {
  const expansion = new Expansion(bound, contracts, versions, round, keep);
  const stages = bound.phases[phase];
  for (let at = 0; at < stages.length; ) {
    const { pipeline } = stages[at];
    let end = at + 1;
    while (pipeline !== undefined && stages[end]?.pipeline === pipeline) end++;
    expansion.stages(stages.slice(at, end), stages.slice(end));
    at = end;
  }
  if (phase === 'measure') expansion.versions.freeNew(stages.at(-1)?.name ?? phase);
  return { steps: expansion.list.steps, versions: expansion.versions.newest };
}

/** The steps that free the versions that none of `keep` has. */
export function expandFree(bound: BoundPlan, contracts: TaskContracts, stage: string, versions: Versions, keep: readonly Versions[]): readonly Step[] {
  const list = new StepList(contracts);
  const freeing = new WrittenVersions(bound, list, versions, keep);
  for (const [data, version] of Object.entries(versions)) freeing.freeVersion(stage, dataSetOf(bound, data), version);
  return list.steps;
}

/** The parts that a stage goes through one behind the other: the place of each, and its steps. */
interface StageParts {
  readonly at: readonly Place[];
  run(part: number): void;
}

/** The first part of each data set, then the second of each. */
function inTurn(sets: readonly StageParts[]): StageParts {
  const [{ at }] = sets;
  if (sets.some((one) => one.at.length !== at.length)) throw new Error('the data sets of a stage in a pipeline have different numbers of parts');
  return { at, run: (part) => sets.forEach(({ run }) => run(part)) };
}

class Expansion {
  readonly list: StepList;
  readonly versions: WrittenVersions;
  readonly #bound: BoundPlan;
  readonly #visits: Visits;

  constructor(bound: BoundPlan, contracts: TaskContracts, versions: Versions, round: Round, keep: readonly Versions[]) {
    this.list = new StepList(contracts);
    this.#bound = bound;
    this.versions = new WrittenVersions(bound, this.list, versions, keep);
    this.#visits = new Visits(bound, contracts, this.list, this.versions, round);
  }

  /** One stage, or those of a pipeline. */
  stages(stages: readonly Stage[], later: readonly Stage[]): void {
    this.versions.beginStage();
    const [first] = stages;
    if (stages.length > 1) this.#pipeline(stages.map((stage) => inTurn(this.#partsOf(stage))));
    else if (first.work.kind === 'blocks') this.#visits.blocks(first, first.work);
    else for (const { at, run } of this.#partsOf(first)) at.forEach((_, part) => run(part));
    for (const stage of stages) if (stage.work.kind === 'exchange' && stage.work.how.startsWith('reduce')) for (const data of stage.work.data) this.versions.forget(dataSetOf(this.#bound, data));
    this.versions.endStage(stages, later);
  }

  /** A stage with several parts for one of another takes them in a row. The places take turns, so that all are at work from the first part on. */
  #pipeline(stages: readonly StageParts[]): void {
    const count = Math.min(...stages.map(({ at }) => at.length));
    const seen = new Map<Place, number>();
    const turns = Array.from({ length: count }, (_, part) => {
      const place = stages[0].at[(part * stages[0].at.length) / count];
      seen.set(place, (seen.get(place) ?? 0) + 1);
      return { part, turn: seen.get(place) as number };
    });
    for (const { part } of turns.sort((left, right) => left.turn - right.turn)) {
      for (const { at, run } of stages) {
        const each = at.length / count;
        for (let one = part * each; one < (part + 1) * each; one++) run(one);
      }
    }
  }

  /** The parts of the stage's tasks, or of each of its data sets. */
  #partsOf(stage: Stage): StageParts[] {
    const { work, name } = stage;
    switch (work.kind) {
      case 'tasks':
        return [{ at: stage.at, run: (part) => this.#visits.part(stage, work.tasks, part) }];
      case 'allocate':
        return work.data.map((data) => this.#allocate(name, dataSetOf(this.#bound, data)));
      case 'exchange':
        return work.data.map((data, i) => {
          const set = dataSetOf(this.#bound, data);
          if (work.how === 'move') return this.#move(name, set, work.to);
          const to = dataSetOf(this.#bound, work.to[i]);
          return work.how === 'all-gather' ? this.#gather(name, set, to) : this.#reduce(name, set, to, work);
        });
      case 'blocks':
        throw new Error(`${name}: a stage over blocks is in no pipeline`);
    }
  }

  #allocate(stage: string, set: DataSet): StageParts {
    const at = set.parts.map(({ at: [home] }) => home);
    return { at, run: (part) => void this.list.allocate(stage, at[part], this.versions.next(stage, set, part), shapeAt(this.#bound, set, part, at[part])) };
  }

  #move(stage: string, set: DataSet, to: 'places' | 'host' | 'from-host'): StageParts {
    return {
      at: set.parts.map(({ at: [home] }) => home),
      run: (part) => {
        const { at } = set.parts[part];
        if (to === 'from-host') return moveFromHost(this.list, stage, { ref: this.versions.next(stage, set, part), at });
        const ref = this.versions.current(set, part);
        if (to === 'host') moveToResults(this.list, stage, { ref, at }, set.columns === undefined ? this.#visits.givenBy(ref) : undefined);
        else moveToPlaces(this.list, stage, { ref, at });
      },
    };
  }

  #gather(stage: string, set: DataSet, whole: DataSet): StageParts {
    const at = set.parts.map(({ at: [home] }) => home);
    const run = allGather(this.list, stage, {
      rows: set.parts.map(({ rows }) => rows),
      part: (part) => ({ ref: this.versions.current(set, part), at: at[part] }),
      places: whole.parts[0].at,
      wire: whole.half === 'only' ? 'f16' : 'f32',
      whole: () => this.versions.next(stage, whole, 0),
      shape: (place) => shapeAt(this.#bound, whole, 0, place),
    });
    return { at, run };
  }

  #reduce(stage: string, partials: DataSet, sums: DataSet, { how, groups }: Extract<Work, { readonly how: 'reduce-to-one' | 'reduce-scatter' }>): StageParts {
    const each = partials.parts.length / sums.parts.length;
    const reduction: Reduction = {
      slice: (slice) => ({
        rows: sums.parts[slice].rows,
        partials: Array.from({ length: each }, (_, k) => ({ ref: this.versions.current(partials, slice * each + k), at: partials.parts[slice * each + k].at[0] })),
        owner: sums.parts[slice].at[0],
      }),
      sum: (slice) => this.versions.next(stage, sums, slice),
      shape: (slice, place) => shapeAt(this.#bound, sums, slice, place),
    };
    return { at: sums.parts.map(({ at: [home] }) => home), run: how === 'reduce-to-one' ? reduceToOne(this.list, stage, reduction) : reduceScatter(this.list, stage, reduction, groups) };
  }
}
