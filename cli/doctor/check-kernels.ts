import { DeviceLostError, throwIfAborted } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import type { CheckKernelsTask } from '../../gpu/own-tasks.ts';
import { startPhase } from '../../engine/phase.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';

/** The outcome of one check; `error` is null when it is not a finite number, and when the check itself failed. */
type CheckResult = {
  readonly kernel: string;
  readonly variant: string;
  readonly error: number | null;
  readonly limit: number | null;
  readonly failed: boolean;
  readonly message?: string;
};

/** Runs every check of kernels that the GPU admits. The exit code is 5 when one fails: factors of this GPU cannot be relied on. */
export async function checkKernels(context: CommandContext): Promise<CommandResult> {
  const { gpu, close } = await openGpu(context.signal);
  try {
    return await checkKernelsOf(gpu, context);
  } finally {
    await close();
  }
}

/** The GPU that WebGPU gives, also one that computes on the processor. Throws UsageError with advice where there is none; CancelledError. */
async function openGpu(signal: AbortSignal): Promise<{ readonly gpu: Device; readonly close: () => Promise<void> }> {
  const { openDevices } = await import('../../api/devices/open-devices.ts');
  const { devices } = await openDevices({ device: 'gpu', workers: 1, signal });
  const gpu = devices.find(({ info }) => info.kind === 'gpu');
  if (gpu === undefined) throw new Error('there is no GPU among the devices that were opened');
  return {
    gpu,
    close: async () => {
      await Promise.all(devices.map((device) => device.close()));
    },
  };
}

export async function checkKernelsOf(gpu: Pick<Device, 'info' | 'run'>, { signal, onEvent }: Pick<CommandContext, 'signal' | 'onEvent'>): Promise<CommandResult> {
  const { checks = [] } = await run(gpu, {});
  const phase = startPhase(onEvent, 'check-kernels', 'checks', checks.length);
  const results: CheckResult[] = [];
  for (const [number, { name, variant }] of checks.entries()) {
    throwIfAborted(signal, 'check-kernels');
    results.push({ kernel: name, variant, ...(await outcome(gpu, number)) });
    phase.progress(number + 1);
  }
  phase.end(checks.length);
  const failed = results.some((result) => result.failed);
  return { json: { command: 'doctor', adapter: gpu.info.description, checks: results }, text: report(gpu.info.description, results), exitCode: failed ? 5 : undefined };
}

async function outcome(gpu: Pick<Device, 'run'>, check: number): Promise<Pick<CheckResult, 'error' | 'limit' | 'failed' | 'message'>> {
  try {
    const { error = NaN, limit = NaN } = await run(gpu, { check });
    return { error: Number.isFinite(error) ? error : null, limit, failed: !(error <= limit) };
  } catch (cause) {
    if (cause instanceof DeviceLostError) throw cause;
    return { error: null, limit: null, failed: true, message: cause instanceof Error ? cause.message.split('\n')[0] : String(cause) };
  }
}

async function run(gpu: Pick<Device, 'run'>, params: CheckKernelsTask['params']): Promise<CheckKernelsTask['values']> {
  return (await gpu.run({ kernel: 'check-kernels', inputs: {}, outputs: {}, params })).values as CheckKernelsTask['values'];
}

/** One line for each kernel: its checks, the one nearest to its limit, and the failed ones below. */
function report(adapter: string, results: readonly CheckResult[]): string {
  const kernels = [...new Set(results.map(({ kernel }) => kernel))];
  const lines = kernels.map((name) => {
    const own = results.filter(({ kernel }) => kernel === name);
    const failed = own.filter((result) => result.failed);
    const good = own.filter((result) => !result.failed);
    const nearest = good.reduce<CheckResult | undefined>((a, b) => (a === undefined || share(b) > share(a) ? b : a), undefined);
    const worst = nearest === undefined ? '' : `largest error ${shown(nearest.error)} of ${shown(nearest.limit)}`;
    return [`${String(own.length).padStart(3)} checks, ${failed.length === 0 ? 'all good' : `${failed.length} FAILED`}`, worst, failed.map(failure)] as const;
  });
  const widths = [Math.max(...kernels.map((name) => name.length)), Math.max(...lines.map(([counts]) => counts.length))];
  return [`  ${adapter}`, ...kernels.flatMap((name, i) => [`  ${name.padEnd(widths[0])}  ${lines[i][0].padEnd(widths[1])}  ${lines[i][1]}`.trimEnd(), ...lines[i][2].map((text) => `      ${text}`)])].join('\n');
}

function failure({ variant, error, limit, message }: CheckResult): string {
  return `${variant}: ${message ?? `error ${shown(error)}, at most ${shown(limit)}`}`;
}

function share({ error, limit }: CheckResult): number {
  return error === null || limit === null || limit === 0 ? 0 : error / limit;
}

function shown(value: number | null): string {
  return value === null ? 'not finite' : value === 0 ? '0' : value.toExponential(1);
}
