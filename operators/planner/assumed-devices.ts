import { formatBytes } from '../../engine/format.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { ratesOf } from './device-rates.ts';

/** Most bytes of one buffer that a WebGPU shader can access on the measured cards. */
const BINDING_BYTES = 2 ** 31 - 4;

/**
 * GPUs that a plan may assume in place of the machine's own devices. They are equal except for their memory
 * (`bytes` of each). A CPU device is added, which loads the ratings. `groups`: socket number of each GPU.
 */
export function assumedDevices(bytes: readonly number[], groups?: readonly number[]): PlanDevices {
  const gpu = (capacityBytes: number, n: number): DeviceInfo => {
    const info: DeviceInfo = {
      place: `gpu:${n}`,
      kind: 'gpu',
      parallelism: 1,
      inOrder: true,
      wholePasses: true,
      ownMemory: true,
      capacityBytes,
      bindingBytes: BINDING_BYTES,
      strideStep: 16,
      limits: { workgroupBytes: 49_152, workgroupThreads: 1024, teamLanes: 32, float16: true },
      ...(groups ? { group: groups[n] } : {}),
      description: '',
    };
    return {
      ...info,
      description: `assumed, with ${formatBytes(capacityBytes)} and the rates of a ${ratesOf(info, 0).name}`,
    };
  };
  const host: DeviceInfo = {
    place: 'cpu',
    kind: 'cpu',
    parallelism: 16,
    inOrder: false,
    wholePasses: false,
    ownMemory: false,
    capacityBytes: 2 ** 32,
    strideStep: 8,
    description: 'assumed, 16 threads',
  };
  return { compute: bytes.map(gpu), host };
}
