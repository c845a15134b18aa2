import { create, globals } from 'webgpu';

/** A device that computes nothing and checks everything: it has every feature, and needs no driver. */
export interface NullGpu {
  readonly features: ReadonlySet<string>;
  /**
   * Errors of a shader's text. It cannot make pipelines, since its subgroups differ in size from the
   * kernels'.
   */
  errorsOf(label: string, code: string): Promise<string[]>;
  close(): void;
}

const features = ['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'] as const;

/** Objects that the garbage collector must not take while they are in use. */
const alive: unknown[] = [];

export async function openNullGpu(): Promise<NullGpu> {
  Object.assign(globalThis, globals);
  const instance = create([
    'backend=null',
    'enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia',
  ]);
  const adapter = await instance.requestAdapter();
  if (adapter === null) throw new Error('there is no null adapter');
  const found = features.filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ requiredFeatures: found as GPUFeatureName[] });
  alive.push(instance, adapter, device);
  return {
    features: new Set<string>(found),
    async errorsOf(label, code) {
      device.pushErrorScope('validation');
      const module = device.createShaderModule({ label, code });
      const { messages } = await module.getCompilationInfo();
      await device.popErrorScope();
      return messages
        .filter(({ type }) => type === 'error')
        .map(({ lineNum, message }) => `line ${lineNum}: ${message}: ${code.split('\n')[lineNum - 1]}`);
    },
    close: () => device.destroy(),
  };
}
