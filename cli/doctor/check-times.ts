import type { CheckOutcome } from '../../api/devices/checked-card.ts';

/** Seconds of a check by activity. They add up to the time of its thread. */
export interface CheckTimes {
  /** Time in which the driver compiled kernels. */
  readonly compile: number;
  /** Time in which the GPU ran kernels, or data were transferred. */
  readonly run: number;
  /** Time in which the thread computed the float64 reference, or prepared data. */
  readonly reference: number;
}

export const NO_TIMES: CheckTimes = { compile: 0, run: 0, reference: 0 };

/**
 * The shares of a check's time, from the spans that the thread recorded. Time in which kernels are both
 * compiled and run counts as compiling.
 */
export function timesOf({
  metrics: { milliseconds },
  spans = [],
}: Pick<CheckOutcome, 'metrics' | 'spans'>): CheckTimes {
  const ofGpu = spans.filter(({ row }) => row !== 'tasks');
  const compile = covered(ofGpu.filter(({ row }) => row === 'compiling'));
  const busy = covered(ofGpu);
  return {
    compile: compile / 1000,
    run: (busy - compile) / 1000,
    reference: Math.max(0, milliseconds - busy) / 1000,
  };
}

export function addTimes(left: CheckTimes, right: CheckTimes): CheckTimes {
  return {
    compile: left.compile + right.compile,
    run: left.run + right.run,
    reference: left.reference + right.reference,
  };
}

/** Milliseconds during which at least one of the spans was running. */
function covered(spans: NonNullable<CheckOutcome['spans']>): number {
  let end = Number.NEGATIVE_INFINITY;
  let sum = 0;
  for (const { start, milliseconds } of spans.toSorted((left, right) => left.start - right.start)) {
    sum += Math.max(0, start + milliseconds - Math.max(start, end));
    end = Math.max(end, start + milliseconds);
  }
  return sum;
}
