import type { JsonObject } from '../../index.ts';
import { counted } from '../../engine/format.ts';
import { seconds3 } from '../progress/phrases.ts';
import { addTimes, type CheckTimes, NO_TIMES } from './check-times.ts';

/** The outcome of one check; `error` is null if it is not a finite number, or if the check itself failed. */
export type CheckResult = {
  readonly kernel: string;
  readonly variant: string;
  readonly error: number | null;
  readonly limit: number | null;
  readonly failed: boolean;
  readonly message?: string;
  readonly seconds: CheckTimes;
};

export interface KernelReport {
  readonly adapter: string;
  /** Devices of the card that ran checks in parallel. */
  readonly devices: number;
  /** Seconds from the first check to the last. */
  readonly seconds: number;
  /** Number of requested checks; more than `results` in a cancelled run. */
  readonly total: number;
  readonly results: readonly CheckResult[];
}

export function reportJson({ adapter, devices, seconds, total, results }: KernelReport): JsonObject {
  const { compile, run, reference } = results.reduce(
    (sum, result) => addTimes(sum, result.seconds),
    NO_TIMES,
  );
  return {
    command: 'doctor',
    adapter,
    devices,
    cancelled: results.length < total,
    total,
    seconds: { wall: seconds, compile, run, reference },
    checks: results.map((result) => ({ ...result, seconds: { ...result.seconds } })),
  };
}

/**
 * One line for each kernel with its number of checks and the check closest to its limit; failed checks
 * follow.
 */
export function reportText({ adapter, devices, seconds, total, results }: KernelReport): string {
  const kernels = [...new Set(results.map(({ kernel }) => kernel))];
  const lines = kernels.map((name) => lineOf(results.filter(({ kernel }) => kernel === name)));
  const width = Math.max(...kernels.map((name) => name.length));
  const counts = Math.max(...lines.map(({ count }) => count.length));
  const table = kernels.flatMap((name, i) => {
    const { count, worst, failures } = lines[i];
    return [
      `  ${name.padEnd(width)}  ${count.padEnd(counts)}  ${worst}`.trimEnd(),
      ...failures.map((text) => `      ${text}`),
    ];
  });
  const times = results.reduce((sum, result) => addTimes(sum, result.seconds), NO_TIMES);
  const cancelled =
    results.length < total ? [`  cancelled after ${results.length} of ${counted(total, 'check')}`] : [];
  return [
    `  ${adapter}`,
    ...table,
    ...cancelled,
    `  ${seconds3(seconds)} on ${counted(devices, 'device')} of the card${sharesText(times)}`,
  ].join('\n');
}

/**
 * The line of a kernel whose checks have all run: "solve-cg: 22 checks, all good, largest error 1.0e-6 of
 * 1.0e-4".
 */
export function kernelText(name: string, results: readonly CheckResult[]): string {
  const { count, worst } = lineOf(results);
  return [`${name}: ${count.trimStart()}`, ...(worst === '' ? [] : [worst])].join(', ');
}

/** "rank 8: error 1.0e-3, at most 1.0e-4" */
export function failureText({ variant, error, limit, message }: CheckResult): string {
  return `${variant}: ${message ?? `error ${shown(error)}, at most ${shown(limit)}`}`;
}

function lineOf(results: readonly CheckResult[]): {
  readonly count: string;
  readonly worst: string;
  readonly failures: readonly string[];
} {
  const failed = results.filter((result) => result.failed);
  const good = results.filter((result) => !result.failed);
  const nearest = good.reduce<CheckResult | undefined>(
    (a, b) => (a === undefined || share(b) > share(a) ? b : a),
    undefined,
  );
  return {
    count: `${String(results.length).padStart(3)} ${results.length === 1 ? 'check' : 'checks'}, ${failed.length === 0 ? 'all good' : `${failed.length} FAILED`}`,
    worst: nearest === undefined ? '' : `largest error ${shown(nearest.error)} of ${shown(nearest.limit)}`,
    failures: failed.map(failureText),
  };
}

/** ": 61% compiling, 12% running, 27% comparing" */
function sharesText({ compile, run, reference }: CheckTimes): string {
  const all = compile + run + reference;
  if (all === 0) return '';
  const percent = (part: number) => `${Math.round((100 * part) / all)}%`;
  return `: ${percent(compile)} compiling, ${percent(run)} running, ${percent(reference)} comparing`;
}

function share({ error, limit }: CheckResult): number {
  return error === null || limit === null || limit === 0 ? 0 : error / limit;
}

function shown(value: number | null): string {
  return value === null ? 'not finite' : value === 0 ? '0' : value.toExponential(1);
}
