/**
 * A GPU in JavaScript, for checks of kernels that no software adapter runs: emulated-kernels.ts has
 * its kernels.
 */
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../../gpu/webgpu/kernel.ts';
import { emulations } from './emulated-kernels.ts';
import type { Buffers, HostBuffer, Params, Uniforms } from './emulated-rows.ts';
import { tensorGpu } from './gpu-info.ts';

/** Opens the emulation. `fault` changes a kernel's outputs, to see that its checks notice. */
export function emulatedGpu(fault: (kernel: string, buffers: Buffers) => void = () => {}): Gpu {
  const bufferOf = async (source: Float32Array | Uint32Array | Int32Array): Promise<HostBuffer> => {
    const bytes = new ArrayBuffer(Math.ceil(source.byteLength / 16) * 16);
    new Uint8Array(bytes).set(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
    return { bytes, destroy: () => {} };
  };
  const writeBuffer = ({ bytes }: HostBuffer, at: number, source: Uint32Array) =>
    new Uint8Array(bytes, at).set(new Uint8Array(source.buffer));
  const roomFor = (bytes: number): HostBuffer => ({
    bytes: new ArrayBuffer(Math.ceil(bytes / 16) * 16),
    destroy: () => {},
  });
  const gpu = {
    info: tensorGpu,
    admits: () => true,
    device: { queue: { writeBuffer } },
    scratch: async (_name: string, bytes: number): Promise<HostBuffer> => roomFor(bytes),
    buffer: async (bytes: number): Promise<HostBuffer> => roomFor(bytes),
    bufferOf,
    download: async ({ bytes }: HostBuffer, target: Float32Array | Uint32Array) =>
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(
        new Uint8Array(bytes, 0, target.byteLength),
      ),
    compile: async (kernel: KernelDescriptor, params: KernelParams) => ({ kernel, params }),
    pass: () => {
      const pass = {
        dispatch(
          { kernel, params }: { readonly kernel: KernelDescriptor; readonly params: KernelParams },
          buffers: Buffers,
          uniforms: Uniforms,
        ) {
          for (const { name } of kernel.bindings)
            if (buffers[name] === undefined) throw new Error(`no buffer for ${name}`);
          for (const name of Object.keys(kernel.uniforms))
            if (uniforms[name] === undefined) throw new Error(`no value for ${name}`);
          emulations[kernel.name](params as Params, buffers, uniforms);
          fault(kernel.name, buffers);
          return pass;
        },
        submit: async ({
          read,
        }: {
          readonly read?: { readonly buffer: HostBuffer; readonly bytes: number };
        } = {}) => ({ times: {}, bytes: read?.buffer.bytes.slice(0, read.bytes) }),
      };
      return pass;
    },
  };
  return gpu as unknown as Gpu;
}
