import { computeDevices, hostDevice } from '../../engine/run/devices.ts';
import { UsageError } from '../../engine/errors.ts';
import { Patience } from '../../engine/waits.ts';
import type { Executor } from '../../engine/run/device.ts';
import type { AlsParams } from '../../operators/als/als-params.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import type { SessionDevice } from '../devices/open-devices.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { RunSession } from '../run-session.ts';

export interface TrainingDevice {
  readonly executor: Executor;
  /**
   * "GPU: NVIDIA H200; f16, subgroups, tensor", "2 GPUs: ... | ...", or "CPU: 2 threads, WebAssembly
   * relaxed-simd (why not a GPU)".
   */
  readonly text: string;
}

/** The parameters of either algorithm that some devices do not support. */
export type DeviceParams = Pick<AlsParams, 'precision'> &
  Partial<Pick<AlsParams, 'kernel'>> &
  Partial<Pick<SgdParams, 'schedule'>>;

/**
 * The session's devices, for training with these parameters. Throws UsageError for a parameter that they do
 * not support.
 */
export function trainingDevice(
  device: SessionDevice,
  executor: Executor,
  { precision, kernel, schedule = 'auto' }: DeviceParams,
): TrainingDevice {
  const cpu = hostDevice(executor);
  const gpus = computeDevices(executor).filter(({ info }) => info.kind === 'gpu');
  if (gpus.length > 0) {
    const used = schedule === 'auto' || schedule === 'blocks' ? gpus : gpus.slice(0, 1);
    return {
      executor,
      text: `${used.length === 1 ? 'GPU' : `${used.length} GPUs`}: ${used.map(({ info }) => info.description).join(' | ')}`,
    };
  }
  const because = device.reason === undefined ? '' : ` (${device.reason})`;
  if (precision === 'f16' || precision === 'int8')
    throw new UsageError(
      `precision ${precision} cannot be used on the CPU, which computes in float32${because}`,
      { advice: 'Leave the precision at auto, or use device gpu' },
    );
  if (kernel !== undefined)
    throw new UsageError(`kernel ${kernel} cannot be used on the CPU: it is for GPUs${because}`, {
      advice: 'Leave the kernel out, or use device gpu',
    });
  const description = device.kind === 'cpu' ? device.description : cpu.info.description;
  return { executor, text: `CPU: ${description}${because}` };
}

/**
 * True if not all devices support these parameters. Devices must then be open before ratings are read, to
 * report it early; by default ratings are read while devices open.
 */
export function dependsOnDevice({ precision = 'auto', kernel, schedule = 'auto' }: DeviceParams): boolean {
  return precision !== 'auto' || kernel !== undefined || schedule !== 'auto';
}

/**
 * Waits until a session's devices are open, and reports them. Throws UsageError for `gpu` without a GPU, and
 * for a parameter that they do not support; CancelledError when the signal fires.
 */
export async function openedDevices(
  session: RunSession,
  params: DeviceParams,
  { signal, events, metrics, executor }: ExecutionContext,
): Promise<void> {
  using _ = session.opening ? metrics.begin('open devices') : undefined;
  using patience = new Patience(signal, 'gpu');
  await patience.waitFor(() => session.opened(events));
  events({ type: 'note', text: trainingDevice(session.device, executor, params).text });
}
