import { DeviceLostError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/phase.ts';
import {
  type CheckedCard,
  type CheckedGpu,
  type CheckOutcome,
  openCard,
  runCheck,
} from '../../api/devices/checked-card.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';
import { nearestFlag } from '../options/nearest.ts';
import { NO_TIMES, timesOf } from './check-times.ts';
import {
  type CheckResult,
  failureText,
  kernelText,
  type KernelReport,
  reportJson,
  reportText,
} from './kernel-report.ts';

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
