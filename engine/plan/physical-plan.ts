import type { DeviceInfo } from './device-info.ts';
import type { JsonObject } from '../json.ts';
import type { Measure, RunMetrics } from '../metrics.ts';
import type { Place } from './place.ts';
import type { BoundPlan, KeptVersions } from './bound-plan.ts';
import type { DataSet, PhaseName, Stage } from './stages.ts';
import { phases } from './stages.ts';

/** Raised when plans of the version before can no longer be run. */
export const PLAN_VERSION = 6;

/**
 * The stages of a run with their places, bytes and reasons: plain JSON, made by pure functions before
 * anything is allocated, printed by `explain`, made into steps by `expand`, saved with a model.
 */
export interface PhysicalPlan {
  readonly planVersion: typeof PLAN_VERSION;
  readonly algorithm: string;
  /** Facts about the data and the parameters, by name, for printing. */
  readonly problem: JsonObject;
  /** Sizes that the data must have to be trained by this plan. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Parameters of the algorithm, all of them. */
  readonly params: JsonObject;
  /** Choices of the algorithm that the stages do not show. */
  readonly choices: JsonObject;
  /** The devices that compute, then the CPU device that loads, where it is not one of them. */
  readonly devices: readonly DeviceInfo[];
  readonly datasets: readonly DataSet[];
  /** Reading, numbering, sorting: streams and stages in front of the steps. */
  readonly load: readonly Stage[];
  /** Runs once; then `round` and `measure` run `rounds` times; then `end` runs once. */
  readonly start: readonly Stage[];
  readonly round: readonly Stage[];
  readonly measure: readonly Stage[];
  readonly end: readonly Stage[];
  readonly rounds: number;
  /**
   * Behind every so many rounds, and behind the last: a copy of what `end` hands out is written for a later
   * run.
   */
  readonly checkpoint?: { readonly every: number; readonly stage: Stage };
  readonly keep: KeptVersions;
  readonly memory: MemoryPlan;
  /** Bytes at places that a measure outside the steps takes for as long as it lasts. */
  readonly measureBytes?: MemoryPlan;
  /** Seconds of a round by their causes, estimated from rates of the devices, where plans were compared. */
  readonly estimate?: Estimate;
  /** Other ways to do the same, each with the reason against it. */
  readonly rejected?: readonly RejectedPlan[];
  /** Choices that hold for the whole plan, each with its reason. */
  readonly reasons: readonly string[];
  /** Measures of a run, by stage (`plan --analyze`). */
  readonly measured?: Readonly<Record<string, Measure>>;
  /** Beside `memory`, the most bytes that were allocated at each place in that run. */
  readonly measuredMemory?: MemoryPlan;
}

/** The estimated time of a round. */
export interface Estimate {
  readonly seconds: number;
  readonly computing: number;
  readonly staging: number;
  readonly exchange: number;
  /** The rates that were assumed, and their origin. */
  readonly rates: string;
}

/** A way that was not taken. */
export interface RejectedPlan {
  readonly name: string;
  /** Estimated seconds of a round. */
  readonly seconds: number;
  readonly reason: string;
}

/** Peaks in bytes, by place: of a device the bytes in its own memory, of `host` all others. */
export type MemoryPlan = Readonly<Record<Place, number>>;

export type PlannedPhase = 'load' | 'checkpoint' | PhaseName;

export interface PlannedStage {
  readonly phase: PlannedPhase;
  readonly stage: Stage;
  /** Number of times that it runs. */
  readonly times: number;
}

/** All stages in the order in which they first run. */
export function stagesOf(plan: PhysicalPlan): PlannedStage[] {
  const { rounds, checkpoint } = plan;
  const of = (phase: 'load' | PhaseName): PlannedStage[] =>
    plan[phase].map((stage) => ({
      phase,
      stage,
      times:
        ((phase === 'round' || phase === 'measure') && !('brief' in stage) ? rounds : 1) *
        ('repeats' in stage ? (stage.repeats?.times ?? 1) : 1),
    }));
  const copied: PlannedStage[] =
    checkpoint === undefined
      ? []
      : [{ phase: 'checkpoint', stage: checkpoint.stage, times: Math.ceil(rounds / checkpoint.every) }];
  return ['load' as const, ...phases].flatMap((phase) =>
    phase === 'end' ? [...copied, ...of(phase)] : of(phase),
  );
}

export function stageNamed(plan: PhysicalPlan, name: string): PlannedStage['stage'] {
  const found = stagesOf(plan).find(({ stage }) => stage.name === name);
  if (found === undefined) throw new Error(`the plan has no stage ${name}`);
  return found.stage;
}

/** The plan with the measures of a run. */
export function withMeasures(plan: PhysicalPlan, metrics: RunMetrics): PhysicalPlan {
  const measured = Object.fromEntries(
    stagesOf(plan).flatMap(({ stage: { name } }) => {
      const measure = metrics.get(name);
      return measure === undefined ? [] : [[name, measure]];
    }),
  );
  const { peaks } = metrics;
  return {
    ...plan,
    measured,
    measuredMemory: Object.fromEntries(
      Object.keys(plan.memory).flatMap((place) =>
        peaks[place] === undefined ? [] : [[place, peaks[place]]],
      ),
    ),
  };
}

/** The plan as `expand` takes it, without the values that only the data give. */
export function unbound(plan: Omit<PhysicalPlan, 'memory'>, name = plan.algorithm): BoundPlan {
  const { devices, datasets, start, round, measure, end, measureBytes } = plan;
  const given = Object.fromEntries(
    datasets.flatMap((set) =>
      set.given
        ? [
            [
              set.name,
              set.parts.map((_, partition) => ({ name: `${name}/${set.name}`, partition, version: 0 })),
            ],
          ]
        : [],
    ),
  );
  return {
    name,
    devices,
    datasets,
    phases: { start, round, measure, end },
    given,
    slices: {},
    ...(measureBytes ? { measureBytes } : {}),
  };
}
