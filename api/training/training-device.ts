import { computeDevices, hostDevice } from '../../engine/run/devices.ts';
import { UsageError } from '../../engine/errors.ts';
import type { Executor } from '../../engine/run/device.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import type { SessionDevice } from '../devices/open-devices.ts';

const NOT_ON_GPU = 'nonnegative factors are solved on the CPU only';

export interface TrainingDevice {
  readonly executor: Executor;
  /** "GPU: NVIDIA H200; f16, subgroups, tensor", "2 GPUs: ... | ...", or "CPU: 2 threads, WebAssembly relaxed-simd (why not a GPU)". */
  readonly text: string;
}

/** The parameters of either algorithm that not every device can serve. */
type DeviceParams = Pick<AlsParams, 'precision'> & Partial<Pick<AlsParams, 'nonnegative' | 'kernel'>> & Partial<Pick<SgdParams, 'schedule'>>;

/**
 * The devices that these parameters can be trained with: the session's, or its CPU alone where `auto` took a GPU that cannot do
 * it. Throws UsageError for a parameter that cannot act there.
 */
export function trainingDevice(device: SessionDevice, executor: Executor, { nonnegative = false, precision, kernel, schedule = 'auto' }: DeviceParams): TrainingDevice {
  const cpu = hostDevice(executor);
  const gpus = computeDevices(executor).filter(({ info }) => info.kind === 'gpu');
  const hasGpu = gpus.length > 0;
  if (hasGpu && !nonnegative) {
    const used = schedule === 'auto' || schedule === 'blocks' ? gpus : gpus.slice(0, 1);
    return { executor, text: `${used.length === 1 ? 'GPU' : `${used.length} GPUs`}: ${used.map(({ info }) => info.description).join(' | ')}` };
  }
  if (hasGpu && device.requested !== 'auto') throw new UsageError(`nonnegative cannot act on a GPU: ${NOT_ON_GPU}`, { advice: 'Use device auto or cpu, or leave nonnegative out' });
  const reason = hasGpu ? NOT_ON_GPU : device.reason;
  const because = reason === undefined ? '' : ` (${reason})`;
  if (precision === 'f16') throw new UsageError(`precision f16 cannot act on the CPU, which computes in float32${because}`, { advice: 'Leave the precision at auto, or use device gpu' });
  if (kernel !== undefined) throw new UsageError(`kernel ${kernel} cannot act on the CPU: it is for GPUs${because}`, { advice: 'Leave the kernel out, or use device gpu' });
  const description = device.kind === 'cpu' ? device.description : cpu.info.description;
  return { executor: hasGpu ? { devices: [cpu], memory: executor.memory, close: () => executor.close() } : executor, text: `CPU: ${description}${because}` };
}
