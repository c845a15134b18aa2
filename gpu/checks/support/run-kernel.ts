import type { JsonObject } from '../../../engine/json.ts';
import type { Partition } from '../../../engine/partition.ts';
import { destroyBuffers } from '../../device/resources.ts';
import type { GpuTaskScope } from '../../handler.ts';
import { scopeOf } from '../../opened-gpu.ts';
import { GpuStore } from '../../store.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';
import type { Groups } from '../../webgpu/pass.ts';
import type { HostBytes } from '../../webgpu/staging.ts';

type Numbers = Float32Array | Int32Array | Uint32Array;

export interface KernelRun<Uniforms extends string = string> {
  readonly uniforms: Readonly<Record<Uniforms, number>>;
  readonly workgroups: Groups;
}

/** Uploads each array to a buffer of the same name. */
export async function uploadAll<Name extends string>(
  gpu: Gpu,
  contents: Readonly<Record<Name, HostBytes>>,
): Promise<Record<Name, GPUBuffer>> {
  const buffers: Partial<Record<Name, GPUBuffer>> = {};
  for (const name of Object.keys(contents) as Name[])
    buffers[name] = await gpu.bufferOf(contents[name], name);
  return buffers as Record<Name, GPUBuffer>;
}

/** Runs a kernel once, with these contents of its buffers. Returns the buffers that it writes, by name. */
export async function runKernel<
  Params extends KernelParams,
  Buffers extends string,
  Uniforms extends string,
  Contents extends Readonly<Record<Buffers, Numbers>>,
>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params, Buffers, Uniforms>,
  params: NoInfer<Params>,
  contents: Contents,
  { uniforms, workgroups }: KernelRun<NoInfer<Uniforms>>,
): Promise<Contents> {
  const compiled = await gpu.compile(kernel, params);
  const buffers = await uploadAll(gpu, contents);
  await gpu.pass(`check ${kernel.name}`).dispatch(compiled, buffers, uniforms, workgroups).submit();
  const after: Record<string, Numbers> = { ...contents };
  for (const { name, access } of kernel.bindings)
    if (access === 'read_write') {
      after[name] = contents[name].slice();
      await gpu.download(buffers[name], after[name]);
    }
  destroyBuffers(buffers);
  return after as Contents;
}

type Partitions = Readonly<Record<string, Partition>>;

/** The scope of one task (GpuTaskScope) on partitions that are there for it alone. */
export interface OpenTask<Params extends JsonObject> {
  readonly scope: GpuTaskScope<Params>;
  /** An input or output in host memory. */
  fetch(name: string): Promise<Partition>;
  fetchPadded(name: string): Promise<Float32Array>;
  close(): void;
}

interface TaskOptions {
  /** Outputs that exist before the task runs, with their contents. */
  readonly outputs?: Partitions;
  /** Matrices that have a float16 copy. */
  readonly halves?: readonly string[];
  /** True: the task is cancelled once its inputs are on the GPU. */
  readonly cancelled?: boolean;
}

export async function openTask<Params extends JsonObject>(
  gpu: Gpu,
  params: Params,
  inputs: Partitions,
  { outputs = {}, halves = [], cancelled = false }: TaskOptions = {},
): Promise<OpenTask<Params>> {
  const store = new GpuStore(gpu);
  const named = { ...outputs, ...inputs };
  for (const [name, partition] of Object.entries(named)) store.put(name, partition);
  const keysOf = (partitions: Partitions) =>
    Object.fromEntries(Object.keys(partitions).map((name) => [name, name]));
  let opened = false;
  const scope = await scopeOf(
    { kernel: 'check', params, inputs: keysOf(inputs), outputs: keysOf(outputs) },
    gpu,
    store,
    { cancelled: () => cancelled && opened, submitted: () => undefined },
  );
  for (const name of halves) await scope.matrixWithHalf(name);
  opened = true;
  return {
    scope: scope as GpuTaskScope<Params>,
    fetch: (name) => store.fetch(name),
    fetchPadded: async (name) => {
      const { rows, stride, values } = scope.matrix(name);
      const content = new Float32Array(rows * stride);
      await gpu.download(values, content);
      return content;
    },
    close: () => {
      for (const name of Object.keys(named)) store.release(name);
      store.trim();
    },
  };
}

/** Runs a handler on partitions of its own. */
export async function runTask<Params extends JsonObject, Outcome>(
  gpu: Gpu,
  handler: (scope: GpuTaskScope<Params>) => Promise<Outcome>,
  params: NoInfer<Params>,
  inputs: Partitions,
  options?: TaskOptions,
): Promise<Outcome> {
  const { scope, close } = await openTask(gpu, params, inputs, options);
  try {
    return await handler(scope);
  } finally {
    close();
  }
}
