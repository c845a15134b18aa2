import { bytesOfBase64 } from '../engine/base64.ts';
import { UsageError } from '../engine/errors.ts';
import { relaxedSimd, simd } from './generated/kernels-wasm.ts';

export type KernelBuild = 'relaxed-simd' | 'simd';

/**
 * The code section, in bytes, of a tiny test module for each build. A runtime that lacks the build's
 * instructions rejects the module. The instructions are f32x4.relaxed_madd (0xfd 0x85 0x02) and f32x4.add
 * (0xfd 0xe4 0x01). The module in text form:
 *
 *     (module (func (param v128) (result v128) local.get 0 local.get 0 [local.get 0] <instruction>))
 */
const probes: Readonly<Record<KernelBuild, readonly number[]>> = {
  'relaxed-simd': [10, 13, 1, 11, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0xfd, 0x85, 0x02, 11],
  simd: [10, 11, 1, 9, 0, 0x20, 0, 0x20, 0, 0xfd, 0xe4, 0x01, 11],
};

function supports(build: KernelBuild): boolean {
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const typeAndFunction = [1, 6, 1, 0x60, 1, 0x7b, 1, 0x7b, 3, 2, 1, 0];
  return WebAssembly.validate(Uint8Array.from([...header, ...typeAndFunction, ...probes[build]]));
}

/** The fastest build that this runtime can run; undefined if its WebAssembly has no SIMD. */
export function fastestBuild(): KernelBuild | undefined {
  return (['relaxed-simd', 'simd'] as const).find(supports);
}

/** Like fastestBuild. Throws UsageError if the runtime has no SIMD. */
export function availableBuild(): KernelBuild {
  const build = fastestBuild();
  if (build !== undefined) return build;
  throw new UsageError('this runtime has no WebAssembly SIMD, which the CPU kernels need', {
    phase: 'cpu device',
    advice: "Use Node 22.12 or newer on a processor with SSE4.1 or NEON, or a GPU with device: 'gpu'",
  });
}

/** The bytes of the module, which imports a shared memory. */
export function kernelBytes(build: KernelBuild): Uint8Array<ArrayBuffer> {
  return bytesOfBase64(build === 'relaxed-simd' ? relaxedSimd : simd);
}

/** The kernels compiled, once for all threads. */
export function compileKernels(build: KernelBuild = availableBuild()): WebAssembly.Module {
  return new WebAssembly.Module(kernelBytes(build));
}
