import { type DeviceInfo, SOFTWARE_MARK } from '../engine/plan/device-info.ts';
import type { Place } from '../engine/plan/place.ts';
import type { GpuInfo } from './webgpu/gpu-info.ts';
import { STRIDE_STEP } from './device/resources.ts';

/** Largest buffer that a kernel can bind, in bytes. */
export function bindingBytesOf({ limits }: GpuInfo): number {
  return Math.min(limits.bindingBytes, limits.bufferBytes);
}

/** The properties of a GPU that plans depend on. */
export function infoOf(
  adapter: GpuInfo,
  place: Place,
  memoryBytes: number | undefined,
  group?: number,
): DeviceInfo {
  const { workgroupBytes, workgroupThreads } = adapter.limits;
  const teamLanes = adapter.features.includes('subgroups') ? 32 : adapter.features.includes('quads') ? 4 : 1;
  return {
    place,
    kind: 'gpu',
    parallelism: 1,
    inOrder: true,
    wholePasses: true,
    ownMemory: true,
    choosesKernels: true,
    capacityBytes: memoryBytes ?? null,
    bindingBytes: bindingBytesOf(adapter),
    strideStep: STRIDE_STEP,
    limits: { workgroupBytes, workgroupThreads, teamLanes, float16: adapter.features.includes('f16') },
    ...(group === undefined ? {} : { group }),
    description: describe(adapter),
  };
}

/** The device's description in messages, for example "NVIDIA H200; f16, subgroups, tensor". */
function describe({ name, features, software }: GpuInfo): string {
  const marks = [...features, ...(software ? [SOFTWARE_MARK] : [])];
  return marks.length === 0 ? name : `${name}; ${marks.join(', ')}`;
}
