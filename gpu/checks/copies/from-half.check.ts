import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { halfValue } from '../support/float16.ts';
import { fromHalfKernel, fromHalfWorkgroups } from '../../copies/from-half.ts';

export const fromHalfChecks: readonly KernelCheck[] = [
  { name: fromHalfKernel.name, variant: 'every half', run: checkWidening },
];

/** Converts every finite normal float16 number to float32, which must be exact. */
async function checkWidening(gpu: Gpu): Promise<{ error: number; limit: number }> {
  const count = 0x8000;
  const words = Uint32Array.from({ length: count }, (_, k) => finite(k) | (finite(0xffff - k) << 16));
  const quads = count / 2;
  const [half, factors] = [await gpu.bufferOf(words, 'half'), await gpu.buffer(16 * quads, 'factors')];
  const kernel = await gpu.compile(fromHalfKernel, {});
  await gpu
    .pass('check from-half')
    .dispatch(kernel, { half, factors }, { quads }, fromHalfWorkgroups(quads))
    .submit();
  const found = new Float32Array(4 * quads);
  await gpu.download(factors, found);
  for (const buffer of [half, factors]) buffer.destroy();
  const wrong = found.filter(
    (value, at) => value !== halfValue((words[at >> 1] >>> (16 * (at & 1))) & 0xffff),
  ).length;
  return { error: wrong, limit: 0 };
}

/**
 * The bits of a float16 number, or 0 for NaN, infinities and subnormal numbers, which some adapters do not
 * keep.
 */
function finite(bits: number): number {
  const exponent = (bits >> 10) & 31;
  return exponent === 31 || exponent === 0 ? 0 : bits;
}
