import type { AcquireOptions, GpuFeature, GpuInfo } from './gpu-info.ts';
import type { GpuHost } from './host.ts';

/**
 * Objects that must stay referenced while the device is used: if the instance, the adapter or the device is
 * garbage-collected, the process ends with a segmentation fault.
 */
export interface AcquiredGpu {
  readonly instance: GPU;
  readonly adapter: GPUAdapter;
  readonly device: GPUDevice;
  readonly info: GpuInfo;
  readonly host: GpuHost;
}

const alive: AcquiredGpu[] = [];

/** Features that kernels use where an adapter has them. */
export const usedFeatures: readonly GPUFeatureName[] = [
  'shader-f16',
  'subgroups',
  'timestamp-query',
  'chromium-experimental-subgroup-matrix' as GPUFeatureName,
];

/** Opens an adapter with the features of `features` that it has. */
export async function openAdapter(
  { instance, adapter, host }: Pick<AcquiredGpu, 'instance' | 'adapter' | 'host'>,
  features: readonly GPUFeatureName[],
  { without = [] }: Pick<AcquireOptions, 'without'> = {},
): Promise<AcquiredGpu> {
  const requiredFeatures = features.filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({
    label: 'factorflow',
    requiredFeatures,
    requiredLimits: requiredLimits(adapter.limits),
  });
  const acquired = { instance, adapter, device, host, info: describe(adapter, device, without) };
  alive.push(acquired);
  return acquired;
}

/** Destroys the device, which frees its memory. */
export function releaseGpu(acquired: AcquiredGpu): void {
  acquired.device.destroy();
  const at = alive.indexOf(acquired);
  if (at >= 0) alive.splice(at, 1);
}

const limitNames = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupsPerDimension',
] as const;

function requiredLimits(limits: GPUSupportedLimits): Record<string, number> {
  return Object.fromEntries(limitNames.map((name) => [name, limits[name]]));
}

/** True when the adapter computes on the processor. */
export function isSoftware({ isFallbackAdapter, device, description }: GPUAdapterInfo): boolean {
  return isFallbackAdapter || /swiftshader|llvmpipe|software/i.test(`${device} ${description}`);
}

interface ExtendedInfo extends GPUAdapterInfo {
  readonly subgroupMatrixConfigs?: readonly {
    readonly componentType: string;
    readonly resultComponentType: string;
    readonly M: number;
    readonly N: number;
    readonly K: number;
  }[];
}

/** True if subgroups multiply 16 x `depth` by `depth` x 16 matrices of these types. */
function multiplies(
  { subgroupMatrixConfigs = [] }: ExtendedInfo,
  type: string,
  resultType: string,
  depth: number,
): boolean {
  return subgroupMatrixConfigs.some(
    ({ componentType, resultComponentType, M, N, K }) =>
      componentType === type && resultComponentType === resultType && M === 16 && N === 16 && K === depth,
  );
}

function describe(adapter: GPUAdapter, device: GPUDevice, without: readonly GpuFeature[]): GpuInfo {
  const info = adapter.info as ExtendedInfo;
  const { limits } = device;
  const subgroupSize = info.subgroupMinSize === info.subgroupMaxSize ? info.subgroupMinSize : 0;
  const has = (name: string) => device.features.has(name);
  const f16 = has('shader-f16');
  // Kernels with subgroups require 32 threads.
  const subgroups = has('subgroups') && subgroupSize === 32;
  const quads = has('subgroups') && info.subgroupMinSize >= 4;
  const matrices = f16 && subgroups && has('chromium-experimental-subgroup-matrix');
  const found: Record<GpuFeature, boolean> = {
    f16,
    quads,
    subgroups,
    tensor: matrices && multiplies(info, 'f16', 'f32', 16),
    int8: matrices && multiplies(info, 'i8', 'i32', 32),
  };
  // Browsers leave the device out; then the maker and the kind, such as "nvidia hopper", are the name.
  const kind = `${info.vendor} ${info.architecture}`.trim();
  const name = [info.device, info.description, kind].find((part) => part !== '');
  return {
    name: name ?? 'unnamed adapter',
    vendor: info.vendor,
    architecture: info.architecture,
    software: isSoftware(info),
    features: (Object.keys(found) as GpuFeature[]).filter(
      (feature) => found[feature] && !without.includes(feature),
    ),
    subgroupSize,
    timestamps: has('timestamp-query'),
    limits: {
      bufferBytes: limits.maxBufferSize,
      bindingBytes: limits.maxStorageBufferBindingSize,
      workgroupBytes: limits.maxComputeWorkgroupStorageSize,
      workgroupThreads: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
      workgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
    },
  };
}
