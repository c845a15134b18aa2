import { type BoundPlan, dataSetOf, type Versions } from '../plan/bound-plan.ts';
import type { PhaseName, Stage } from '../plan/stages.ts';
import { Exchanges } from './expand/exchanges.ts';
import { endOfPipeline, inTurn, pipeline, type StageParts } from './expand/pipeline.ts';
import { type Round, Visits } from './expand/visits.ts';
import { Waves } from './expand/waves.ts';
import { WrittenVersions } from './expand/written-versions.ts';
import { StepList } from './step-list.ts';
import type { Step, TaskContracts } from './step.ts';

export type { Round } from './expand/visits.ts';

export interface Expanded {
  readonly steps: readonly Step[];
  /** The newest versions after these steps. */
  readonly versions: Versions;
}

/**
 * Turns the stages of one phase of a plan into steps. A pure function: nothing is run.
 *
 * - `round`: the training iteration to run or to measure; for the phase `end`, the last one.
 * - `keep`: versions of data sets that must not be freed. All other versions that a round replaces are freed
 *   after their last reader, and versions that a measure creates are freed at its end.
 */
export function expand(
  bound: BoundPlan,
  contracts: TaskContracts,
  phase: PhaseName,
  versions: Versions,
  round: Round = { number: 0 },
  keep: readonly Versions[] = [],
): Expanded {
  const expansion = new Expansion(bound, contracts, versions, round, keep);
  const stages = bound.phases[phase].filter(({ brief }) => !round.brief || brief === undefined);
  for (let at = 0; at < stages.length;) {
    const end = endOfPipeline(stages, at);
    expansion.stages(stages.slice(at, end), stages.slice(end));
    at = end;
  }
  if (phase === 'measure') expansion.versions.freeNew(stages.at(-1)?.name ?? phase);
  return { steps: expansion.list.steps, versions: expansion.versions.newest };
}

/** Returns the steps that free the versions which are in none of `keep`. */
export function expandFree(
  bound: BoundPlan,
  contracts: TaskContracts,
  stage: string,
  versions: Versions,
  keep: readonly Versions[],
): readonly Step[] {
  const list = new StepList(contracts, { edges: bound.visitsARow === undefined });
  const freeing = new WrittenVersions(bound, list, versions, keep);
  for (const [data, version] of Object.entries(versions))
    freeing.freeVersion(stage, dataSetOf(bound, data), version);
  return list.steps;
}

class Expansion {
  readonly list: StepList;
  readonly versions: WrittenVersions;
  readonly #bound: BoundPlan;
  readonly #round: Round;
  readonly #visits: Visits;
  readonly #exchanges: Exchanges;

  constructor(
    bound: BoundPlan,
    contracts: TaskContracts,
    versions: Versions,
    round: Round,
    keep: readonly Versions[],
  ) {
    this.list = new StepList(contracts, { edges: bound.visitsARow === undefined });
    [this.#bound, this.#round] = [bound, round];
    this.versions = new WrittenVersions(bound, this.list, versions, keep);
    this.#visits = new Visits({ bound, contracts, list: this.list, versions: this.versions }, round);
    this.#exchanges = new Exchanges(bound, this.list, this.versions, round.number, (ref) =>
      this.#visits.givenBy(ref),
    );
  }

  /** Expands one stage, or the stages of a pipeline. */
  stages(stages: readonly Stage[], later: readonly Stage[]): void {
    this.versions.beginStage();
    const [first] = stages;
    const waves = new Waves(this.list);
    const partsOf = (stage: Stage, at: number) =>
      this.#partsOf(stage, [...stages.slice(at + 1), ...later], waves);
    if (stages.length > 1)
      pipeline(
        stages.map((stage, at) => ({
          ...inTurn(partsOf(stage, at)),
          times: this.#timesOf(stage),
          together: stage.repeats?.together,
        })),
      );
    else {
      for (const { at, run, end } of partsOf(first, 0)) {
        at.forEach((_, part) => run(part));
        end?.();
      }
    }
    this.versions.endStage(stages, later);
  }

  #timesOf({ repeats }: Stage): number | undefined {
    const taken = repeats?.takes === undefined ? undefined : this.#round.params?.[repeats.takes];
    return typeof taken === 'number' ? taken : repeats?.times;
  }

  /** Returns the parts that a stage processes: of its tasks, or of each of its data sets. */
  #partsOf(stage: Stage, later: readonly Stage[], waves: Waves): StageParts[] {
    const { work, name } = stage;
    switch (work.kind) {
      case 'tasks':
        return [this.#visits.parts(stage, work.tasks, later)];
      case 'allocate':
        return work.data.map((data) => this.#exchanges.allocate(name, dataSetOf(this.#bound, data)));
      case 'free':
        return work.data.map((data) => this.#exchanges.free(name, dataSetOf(this.#bound, data)));
      case 'exchange':
        return this.#exchanges.of(name, work);
      case 'blocks':
        return [this.#visits.blocks(stage, work, waves)];
      case 'grown':
        return [];
    }
  }
}
