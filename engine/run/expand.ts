import { type BoundPlan, dataSetOf, type Versions } from '../plan/bound-plan.ts';
import type { PhaseName, Stage } from '../plan/stages.ts';
import { HOST } from '../plan/place.ts';
import { allGather } from './all-gather.ts';
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
  stages.forEach((stage, at) => expansion.stage(stage, stages.slice(at + 1)));
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

  stage(stage: Stage, later: readonly Stage[]): void {
    const { work } = stage;
    this.versions.beginStage();
    if (work.kind === 'tasks') this.#visits.parts(stage, work.tasks, later);
    else if (work.kind === 'blocks') this.#visits.blocks(stage, work);
    else if (work.kind === 'allocate') for (const data of work.data) this.#allocate(stage.name, data);
    else if (work.how === 'move') for (const data of work.data) this.#move(stage.name, data, work.to);
    else if (work.how !== 'all-gather') throw new Error(`${stage.name}: no steps for ${work.how}`);
    else work.data.forEach((data, i) => this.#gather(stage.name, data, work.to[i]));
    this.versions.endStage(stage, later);
  }

  #allocate(stage: string, data: string): void {
    const set = dataSetOf(this.#bound, data);
    set.parts.forEach(({ at }, partition) => {
      const ref = this.versions.next(stage, set, partition);
      for (const place of at) this.list.allocate(stage, place, ref, shapeAt(this.#bound, set, partition, place));
    });
  }

  #move(stage: string, data: string, to: 'places' | 'host' | 'from-host'): void {
    const set = dataSetOf(this.#bound, data);
    set.parts.forEach(({ at: [home, ...others] }, partition) => {
      if (to === 'from-host') {
        const ref = this.versions.next(stage, set, partition);
        if (home === HOST) return;
        this.list.move(stage, ref, HOST, home);
        this.list.free(stage, HOST, [ref]);
        return;
      }
      const ref = this.versions.current(set, partition);
      if (to === 'host') this.list.handOut(stage, ref, home, set.columns === undefined ? this.#visits.givenBy(ref) : undefined);
      else for (const place of others) this.list.move(stage, ref, home, place, { load: true });
    });
  }

  #gather(stage: string, data: string, to: string): void {
    const [from, whole] = [dataSetOf(this.#bound, data), dataSetOf(this.#bound, to)];
    const parts = from.parts.map(({ at: [home] }, partition) => ({ ref: this.versions.current(from, partition), home }));
    allGather(this.list, stage, parts, () => this.versions.next(stage, whole, 0), whole.parts[0].at);
  }
}
