import {
  type CheckedCard,
  type CheckedGpu,
  type CheckOutcome,
  openCard,
  runCheck,
} from '../../api/devices/checked-card.ts';
import { DeviceLostError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { counted } from '../../engine/format.ts';
import type { JsonObject } from '../../index.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';
import { nearestFlag } from '../options/option.ts';
import { seconds3 } from '../progress/phrases.ts';

export interface CheckRequest {
  /** Kernels to check; default: all. */
  readonly kernels?: readonly string[] | undefined;
  /** Number of devices in parallel; default: by the number of cores. */
  readonly workers?: number | undefined;
}

type Check = { readonly number: number; readonly kernel: string; readonly variant: string };

type Context = Pick<CommandContext, 'signal' | 'onEvent'>;

/**
 * Most checks that a device takes at a time. Neighbouring checks share data, which each thread generates for
 * itself.
 */
const MOST_TAKEN = 8;

/**
 * Runs every kernel check that the GPU supports, on several devices of the card in parallel: most of a
 * check's time is spent in the driver's compiler and in float64 reference kernels, which need one thread
 * each. The exit code is 5 if a check fails: this GPU's factors are not reliable. A cancelled run returns the
 * results so far and exit code 130.
 */
export async function checkKernels(request: CheckRequest, context: CommandContext): Promise<CommandResult> {
  const card = await openCard(request.workers, context.signal);
  try {
    return await checkKernelsOf(card, request, context);
  } finally {
    await card.close();
  }
}

/** Runs the checks. Failed checks and finished kernels are reported as notes while others run. */
export async function checkKernelsOf(
  card: CheckedCard,
  request: CheckRequest,
  { signal, onEvent }: Context,
): Promise<CommandResult> {
  const checks = wanted((await runCheck(card.gpu)).values, request, card.gpu.info.description);
  throwIfAborted(signal, 'check-kernels');
  const started = performance.now();
  const phase = startPhase(onEvent, 'check-kernels', 'checks', checks.length);
  const results = new Map<number, CheckResult>();
  const ended = (check: Check, result: CheckResult) => {
    if (signal.aborted) return;
    results.set(check.number, result);
    if (result.failed) onEvent({ type: 'note', text: `FAILED ${result.kernel}, ${failureText(result)}` });
    const own = checks
      .filter(({ kernel }) => kernel === check.kernel)
      .flatMap(({ number }) => results.get(number) ?? []);
    if (own.length === checks.filter(({ kernel }) => kernel === check.kernel).length)
      onEvent({ type: 'note', text: kernelText(check.kernel, own) });
    phase.progress(results.size);
  };
  const devices = await runAll(card, checks, ended, { signal, onEvent });
  const done = checks.flatMap(({ number }) => results.get(number) ?? []);
  const cancelled = done.length < checks.length;
  if (!cancelled) phase.end(checks.length);
  const report: KernelReport = {
    adapter: card.gpu.info.description,
    devices,
    seconds: (performance.now() - started) / 1000,
    total: checks.length,
    results: done,
  };
  const failed = done.some((result) => result.failed);
  return {
    json: reportJson(report),
    text: reportText(report),
    exitCode: cancelled ? 130 : failed ? 5 : undefined,
  };
}

/**
 * The checks of the named kernels. Throws UsageError for a kernel that has no check, or none on this adapter.
 */
function wanted(
  { checks = [], kernels = [] }: CheckOutcome['values'],
  { kernels: named }: CheckRequest,
  adapter: string,
): Check[] {
  const all = checks.map(({ name, variant }, number) => ({ number, kernel: name, variant }));
  for (const name of named ?? []) {
    if (all.some(({ kernel }) => kernel === name)) continue;
    if (kernels.includes(name))
      throw new UsageError(
        `--kernel ${name}: ${adapter} does not admit this kernel, and no run uses it there`,
      );
    const there = [...new Set(all.map(({ kernel }) => kernel))];
    const guess = nearestFlag(name, there);
    const advice = `${guess === undefined ? '' : `Did you mean ${guess}? `}The kernels are: ${there.join(', ')}`;
    throw new UsageError(`--kernel: there is no kernel "${name}"`, { advice });
  }
  return named === undefined ? all : all.filter(({ kernel }) => named.includes(kernel));
}

/**
 * Runs the checks on one or more devices until all have ended or the run is cancelled. Returns the
 * number of devices.
 */
async function runAll(
  card: CheckedCard,
  checks: readonly Check[],
  ended: (check: Check, result: CheckResult) => void,
  { signal, onEvent }: Context,
): Promise<number> {
  const most = Math.max(1, Math.min(card.most, Math.ceil(checks.length / 2)));
  let [next, devices] = [0, 1];
  let lost = false;
  const take = () =>
    checks.slice(next, (next += Math.min(MOST_TAKEN, Math.ceil((checks.length - next) / (4 * most)))));
  const goesOn = () => next < checks.length && !signal.aborted && !lost;
  const work = async (gpu: CheckedGpu) => {
    while (goesOn()) {
      for (const check of take()) {
        if (signal.aborted || lost) return;
        ended(check, await outcome(gpu, check).catch(endAll));
      }
    }
  };
  const endAll = (error: unknown): never => {
    lost = true;
    throw error;
  };
  const openMore = async () => {
    const working: Promise<void>[] = [];
    for (; devices < most && goesOn(); devices++) {
      const another = await card.open(devices).catch(
        (error: unknown) =>
          void onEvent({
            type: 'note',
            text: `continues with ${devices} of ${most} devices: ${textOf(error)}`,
          }),
      );
      if (another === undefined) break;
      working.push(work(another));
      // A failing device ends the others; the error is thrown below.
      working.at(-1)?.catch(() => undefined);
    }
    await Promise.all(working);
  };
  await Promise.race([Promise.all([work(card.gpu), openMore()]), aborted(signal)]);
  return devices;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function outcome(gpu: CheckedGpu, { number, kernel, variant }: Check): Promise<CheckResult> {
  try {
    const result = await runCheck(gpu, number);
    const { error = NaN, limit = NaN } = result.values;
    return {
      kernel,
      variant,
      error: Number.isFinite(error) ? error : null,
      limit,
      failed: !(error <= limit),
      seconds: timesOf(result),
    };
  } catch (cause) {
    if (cause instanceof DeviceLostError) throw cause;
    return {
      kernel,
      variant,
      error: null,
      limit: null,
      failed: true,
      message: textOf(cause),
      seconds: NO_TIMES,
    };
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0] : String(error);
}

/** The outcome of one check; `error` is null if it is not a finite number, or if the check itself failed. */
type CheckResult = {
  readonly kernel: string;
  readonly variant: string;
  readonly error: number | null;
  readonly limit: number | null;
  readonly failed: boolean;
  readonly message?: string;
  readonly seconds: CheckTimes;
};

interface KernelReport {
  readonly adapter: string;
  /** Devices of the card that ran checks in parallel. */
  readonly devices: number;
  /** Seconds from the first check to the last. */
  readonly seconds: number;
  /** Number of requested checks; more than `results` in a cancelled run. */
  readonly total: number;
  readonly results: readonly CheckResult[];
}

function reportJson({ adapter, devices, seconds, total, results }: KernelReport): JsonObject {
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
function reportText({ adapter, devices, seconds, total, results }: KernelReport): string {
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
function kernelText(name: string, results: readonly CheckResult[]): string {
  const { count, worst } = lineOf(results);
  return [`${name}: ${count.trimStart()}`, ...(worst === '' ? [] : [worst])].join(', ');
}

/** "rank 8: error 1.0e-3, at most 1.0e-4" */
function failureText({ variant, error, limit, message }: CheckResult): string {
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

/** Seconds of a check by activity. They add up to the time of its thread. */
interface CheckTimes {
  /** Time in which the driver compiled kernels. */
  readonly compile: number;
  /** Time in which the GPU ran kernels, or data were transferred. */
  readonly run: number;
  /** Time in which the thread computed the float64 reference, or prepared data. */
  readonly reference: number;
}

const NO_TIMES: CheckTimes = { compile: 0, run: 0, reference: 0 };

/**
 * The shares of a check's time, from the spans that the thread recorded. Time in which kernels are both
 * compiled and run counts as compiling.
 */
function timesOf({
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

function addTimes(left: CheckTimes, right: CheckTimes): CheckTimes {
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
