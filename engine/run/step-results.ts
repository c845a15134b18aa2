import type { JsonObject } from '../json.ts';
import type { Partition } from '../partition.ts';
import type { Place } from '../plan/place.ts';
import type { Step } from './step.ts';

export interface HandedOut {
  readonly id: number;
  readonly name: string;
  readonly partition: Partition;
}

/** The values of the tasks in a list of steps, and the partitions handed out. */
export class StepResults {
  /** For each device with its own clock: when its last kernel ended, in milliseconds of that clock. */
  readonly ends: ReadonlyMap<Place, number>;
  readonly #values: readonly { readonly step: Step; readonly values: readonly JsonObject[] }[];
  readonly #handed: readonly HandedOut[];

  constructor(
    values: readonly { readonly step: Step; readonly values: readonly JsonObject[] }[],
    handed: readonly HandedOut[],
    ends: ReadonlyMap<Place, number> = new Map(),
  ) {
    this.ends = ends;
    this.#values = values;
    this.#handed = handed;
  }

  /** All partitions that were handed out, in the order of steps. */
  get handed(): Partition[] {
    return this.#handed.map(({ partition }) => partition);
  }

  /** The partitions with a name that steps handed out, in step order. */
  partitions(name: string): Partition[] {
    return this.#handed.flatMap((one) => (one.name === name ? [one.partition] : []));
  }

  /**
   * The values of the tasks of a stage, or only of one kernel of it, in the order of steps and then of
   * slices.
   */
  of(stage: string, kernel?: string): JsonObject[] {
    return this.#values.flatMap(({ step, values }) =>
      step.stage === stage &&
      (kernel === undefined || (step.do.kind === 'task' && step.do.task.kernel === kernel))
        ? values
        : [],
    );
  }

  /**
   * Like `of`, grouped by part. The part of a task is the partition that it outputs under the name `output`.
   * If several places compute the same part, the values are from the first place.
   */
  byPart(stage: string, kernel: string, output: string): JsonObject[][] {
    const parts: JsonObject[][] = [];
    for (const { step, values } of this.#values) {
      if (step.stage === stage && step.do.kind === 'task' && step.do.task.kernel === kernel)
        parts[step.do.task.outputs[output].partition] ??= [...values];
    }
    return parts;
  }
}
