import type { DeviceLimits } from './executor.ts';
import type { JsonObject } from './json.ts';
import type { Measure, RunMetrics } from './metrics.ts';

/**
 * What will run, where, with how many bytes, and why: plain JSON, made by pure functions before anything is allocated,
 * printed by `explain`, saved with a model.
 */
export interface PhysicalPlan {
  readonly planVersion: 1;
  readonly algorithm: string;
  /** What is known of the data and asked for, by name. */
  readonly problem: JsonObject;
  readonly devices: readonly DevicePlan[];
  readonly stages: readonly StagePlan[];
  readonly memory: MemoryPlan;
  /** Choices that hold for the whole plan, each with its reason. */
  readonly reasons: readonly string[];
}

export interface DevicePlan {
  readonly name: string;
  readonly kind: 'cpu' | 'gpu';
  readonly parallelism: number;
  /** Null where nobody tells. */
  readonly capacityBytes: number | null;
  readonly description: string;
  /** See Device; absent where there is no such bound, or where it is 8. */
  readonly bindingBytes?: number;
  readonly strideStep?: number;
  readonly limits?: DeviceLimits;
}

export interface StagePlan {
  /** Position in the plan, from 0; `inputs` are the stages whose results it reads. */
  readonly id: number;
  /** Also the name under which its measures are kept. */
  readonly name: string;
  readonly inputs: readonly number[];
  /** Device name, or 'host' for the calling thread. */
  readonly device: string;
  readonly kernel?: string;
  /** Which of a GPU's kernels, and what it gathers factors as. */
  readonly variant?: string;
  readonly precision?: 'f32' | 'f16';
  /** The grid of R: p vertical parts of the fixed side, q horizontal parts of the solved side (cuMF, section 4). */
  readonly partitions?: { readonly p: number; readonly q: number };
  readonly tasks?: number;
  /** How often the stage runs (iterations). */
  readonly repeat?: number;
  readonly bytesRead?: number;
  readonly bytesWritten?: number;
  readonly flops?: number;
  readonly exchange?: string;
  readonly reasons?: readonly string[];
  readonly measured?: Measure;
}

export interface MemoryPlan {
  /** Peak of shared host memory that the plan itself asks for (blocks, chunks). */
  readonly hostBytes: number;
  /** Peak of the device's own memory (factors, scratch). */
  readonly deviceBytes: number;
}

/** The plan with what a run measured beside what was planned (`plan --analyze`). */
export function withMeasures(plan: PhysicalPlan, metrics: RunMetrics): PhysicalPlan {
  return { ...plan, stages: plan.stages.map((stage) => ({ ...stage, measured: metrics.get(stage.name) })) };
}
