import type { GpuInfo } from '../../../gpu/webgpu/gpu-info.ts';

const limits = {
  bufferBytes: 2 ** 40,
  bindingBytes: 2 ** 31 - 4,
  workgroupBytes: 49_152,
  workgroupThreads: 1024,
  workgroupsPerDimension: 65_535,
  storageBuffers: 16,
};

/** Description of a card with tensor cores. */
export const tensorGpu: GpuInfo = {
  name: 'Tensor 9',
  vendor: 'nvidia',
  architecture: 'hopper',
  software: false,
  features: ['f16', 'quads', 'subgroups', 'tensor', 'int8'],
  subgroupSize: 32,
  timestamps: true,
  limits,
};

/** Description of a card with the features that every adapter has. */
export const plainGpu: GpuInfo = {
  ...tensorGpu,
  name: 'Plain 1',
  features: [],
  limits: { ...limits, workgroupBytes: 16_384, workgroupThreads: 256, storageBuffers: 8 },
};
