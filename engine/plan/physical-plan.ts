import type { DeviceInfo } from './device-info.ts';
import type { JsonObject } from '../json.ts';
import type { Measure, RunMetrics } from '../metrics.ts';
import type { Place } from './place.ts';
import type { BoundPlan, KeptVersions } from './bound-plan.ts';
import type { DataSet, PhaseName, Stage } from './stages.ts';
import { phases } from './stages.ts';

/** Increased when plans of the previous version can no longer be run. */
export const PLAN_VERSION = 6;

/**
 * The stages of a run with their places, bytes and reasons, as plain JSON. Pure functions make it before
 * anything is allocated; `explain` prints it, `expand` turns it into steps, and a model saves it.
 */
export interface PhysicalPlan {
  readonly planVersion: typeof PLAN_VERSION;
  readonly algorithm: string;
  /** Facts about the data and the parameters, by name, for printing. */
  readonly problem: JsonObject;
  /** Sizes that the data must have for this plan. */
  readonly sizes: Readonly<Record<string, number>>;
  /** All parameters of the algorithm. */
  readonly params: JsonObject;
  /** Choices of the algorithm that are not visible in the stages. */
  readonly choices: JsonObject;
  /** The devices that compute, and also the CPU device that loads the data if it is not one of them. */
  readonly devices: readonly DeviceInfo[];
  readonly datasets: readonly DataSet[];
  /** Reading, numbering and sorting, before the first step. */
  readonly load: readonly Stage[];
  /** Runs once; then `round` and `measure` run `rounds` times; then `end` runs once. */
  readonly start: readonly Stage[];
  readonly round: readonly Stage[];
  readonly measure: readonly Stage[];
  readonly end: readonly Stage[];
  readonly rounds: number;
  /**
   * A checkpoint for a later run: a copy of what `end` would return, written after every `every` rounds and
   * after the last.
   */
  readonly checkpoint?: { readonly every: number; readonly stage: Stage };
  readonly keep: KeptVersions;
  readonly memory: MemoryPlan;
  /**
   * Bytes at each place that computing a metric of a round allocates while it runs. This computation is not
   * among the plan's steps.
   */
  readonly measureBytes?: MemoryPlan;
  /** Estimated seconds of a round by cause, from the devices' rates, if plans were compared. */
  readonly estimate?: Estimate;
  /** Alternative plans, each with the reason for its rejection. */
  readonly rejected?: readonly RejectedPlan[];
  /** Choices for the whole plan, each with its reason. */
  readonly reasons: readonly string[];
  /** Measures of a run, by stage (`plan --analyze`). */
  readonly measured?: Readonly<Record<string, Measure>>;
  /** The peak of allocated bytes at each place in that run, to compare with `memory`. */
  readonly measuredMemory?: MemoryPlan;
}

/** The estimated time of a round. */
export interface Estimate {
  readonly seconds: number;
  readonly computing: number;
  readonly staging: number;
  readonly exchange: number;
  /** The rates that were assumed, and their source. */
  readonly rates: string;
}

/** A plan that was not chosen. */
export interface RejectedPlan {
  readonly name: string;
  /** Estimated seconds of a round. */
  readonly seconds: number;
  readonly reason: string;
}

/**
 * The peak of memory in bytes, by place. For a device with its own memory, only that memory counts; for
 * `host`, all other memory.
 */
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

/** The plan in the form that `expand` takes, without values that depend on the data. */
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
