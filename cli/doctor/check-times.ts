import type { CheckOutcome } from '../../api/devices/checked-card.ts';

/** Seconds of a check by their use. They add up to the time that its thread took. */
export interface CheckTimes {
  /** The driver compiled kernels. */
  readonly compile: number;
  /** The GPU ran kernels, or data were on their way. */
  readonly run: number;
  /** The thread computed the twin in float64, or prepared the data. */
  readonly reference: number;
}

export const NO_TIMES: CheckTimes = { compile: 0, run: 0, reference: 0 };

/**
 * The shares of a check's time, by the spans that the thread noted. Time in which kernels are compiled and
 * run counts as compiling.
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

/** Milliseconds in which at least one of the spans was under way. */
function covered(spans: NonNullable<CheckOutcome['spans']>): number {
  let end = Number.NEGATIVE_INFINITY;
  let sum = 0;
  for (const { start, milliseconds } of spans.toSorted((left, right) => left.start - right.start)) {
    sum += Math.max(0, start + milliseconds - Math.max(start, end));
    end = Math.max(end, start + milliseconds);
  }
  return sum;
}
