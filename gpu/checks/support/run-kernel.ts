import { destroyBuffers } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';
import type { HostBytes } from '../../webgpu/staging.ts';

type Numbers = Float32Array | Int32Array | Uint32Array;

export interface KernelRun<Uniforms extends string = string> {
  readonly uniforms: Readonly<Record<Uniforms, number>>;
  readonly workgroups: number;
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
