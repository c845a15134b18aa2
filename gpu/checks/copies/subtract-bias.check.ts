import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { randomNumbers } from '../support/numbers.ts';
import { subtractBiasKernel, subtractBiasWorkgroups } from '../../copies/subtract-bias.ts';

/**
 * Each case is a range of groups of four ratings: the first group, and their number. The largest range is
 * divided among many workgroups.
 */
export const subtractBiasChecks: readonly KernelCheck[] = [
  [0, 1],
  [3, 70],
  [0, 5000],
].map(([first, fours]) => ({
  name: subtractBiasKernel.name,
  variant: `${fours} groups of four from ${first}`,
  run: (gpu) => check(gpu, first, fours),
}));

async function check(gpu: Gpu, first: number, fours: number): Promise<{ error: number; limit: number }> {
  const random = randomNumbers(fours);
  const count = 4 * (first + fours + 2);
  const stale = 1e9;
  const mean = 3.25;
  const fixedBias = Float32Array.from({ length: 300 }, () => random() - 0.5);
  const indices = Uint32Array.from({ length: count }, () => Math.floor(random() * fixedBias.length));
  const values = Float32Array.from({ length: count }, () => 5 * random());
  const buffers = {
    indices: await gpu.bufferOf(indices, 'indices'),
    values: await gpu.bufferOf(values, 'values'),
    fixed_bias: await gpu.bufferOf(fixedBias, 'biases'),
    centred: await gpu.bufferOf(new Float32Array(count).fill(stale), 'centred'),
  };
  await gpu
    .pass('check subtract-bias')
    .dispatch(
      await gpu.compile(subtractBiasKernel, {}),
      buffers,
      { first, fours, mean },
      subtractBiasWorkgroups(fours),
    )
    .submit();
  const found = new Float32Array(count);
  await gpu.download(buffers.centred, found);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  let error = 0;
  found.forEach((value, k) => {
    const inside = k >= 4 * first && k < 4 * (first + fours);
    error = Math.max(error, Math.abs(value - (inside ? values[k] - mean - fixedBias[indices[k]] : stale)));
  });
  return { error, limit: 1e-6 };
}
