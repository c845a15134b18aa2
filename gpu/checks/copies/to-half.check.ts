import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { halfValue } from '../support/float16.ts';
import { randomNumbers } from '../support/numbers.ts';
import { addHalf, toHalfKernel } from '../../copies/to-half.ts';

/**
 * Limit of the rounding error to float16; it allows rounding towards zero. Relative for normal numbers, and
 * absolute for numbers below the smallest normal one.
 */
const LIMIT = 2 ** -10;

export const toHalfChecks: readonly KernelCheck[] = [1, 100].map((rows) => ({
  name: toHalfKernel.name,
  variant: `${rows} rows`,
  run: (gpu) => check(gpu, rows),
}));

async function check(gpu: Gpu, rows: number): Promise<{ error: number; limit: number }> {
  const stride = 48;
  const random = randomNumbers(rows);
  const factors = Float32Array.from({ length: rows * stride }, (_, i) =>
    i % 5 === 0 ? 0 : (2 * random() - 1) * 10 ** (8 * random() - 4),
  );
  const words = new Uint32Array(((rows + 1) * stride) / 2).fill(0x7bff7bff);
  const buffers = {
    factors: await gpu.bufferOf(factors, 'factors'),
    half: await gpu.bufferOf(words, 'half'),
  };
  const pass = gpu.pass('check to-half');
  await addHalf(gpu, pass, { rows, stride, values: buffers.factors, half: buffers.half });
  await pass.submit();
  await gpu.download(buffers.half, words);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  let error = 0;
  for (let i = 0; i < 2 * words.length; i++) {
    const found = halfValue((words[i >> 1] >>> (16 * (i & 1))) & 0xffff);
    const expected = factors[i] ?? 0;
    error = Math.max(error, Math.abs(found - expected) / Math.max(Math.abs(expected), 2 ** -14));
  }
  return { error, limit: LIMIT };
}
