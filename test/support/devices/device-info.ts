import type { DeviceInfo } from '../../../engine/plan/device-info.ts';

/** A CPU as plans see it, of two threads. */
export const cpuInfo: DeviceInfo = {
  place: 'cpu',
  kind: 'cpu',
  parallelism: 2,
  inOrder: false,
  wholePasses: false,
  ownMemory: false,
  capacityBytes: 4 * 2 ** 30,
  strideStep: 8,
  description: '2 threads, WebAssembly relaxed-simd',
};

/** A GPU as plans see it, whose memory is not known. */
export const h200Info: DeviceInfo = {
  place: 'gpu:0',
  kind: 'gpu',
  parallelism: 1,
  inOrder: true,
  wholePasses: true,
  ownMemory: true,
  choosesKernels: true,
  capacityBytes: null,
  bindingBytes: 2 ** 31 - 4,
  strideStep: 16,
  limits: { workgroupBytes: 49_152, workgroupThreads: 1024, teamLanes: 32, float16: true },
  description: 'NVIDIA H200',
};
