import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { unpaddedRowsKernel, unpaddedRowsWorkgroups } from '../../copies/unpadded-rows.ts';

/** Cases: rows, columns, stride, first value. */
export const unpaddedRowsChecks: readonly KernelCheck[] = [
  [1, 1, 16, 0],
  [700, 5, 16, 13],
  [333, 100, 112, 1999],
  [50, 16, 16, 0],
].map(([rows, columns, stride, first]) => ({
  name: unpaddedRowsKernel.name,
  variant: `${rows} x ${columns}, ${stride} apart, from ${first}`,
  run: (gpu) => check(gpu, rows, columns, stride, first),
}));

async function check(
  gpu: Gpu,
  rows: number,
  columns: number,
  stride: number,
  first: number,
): Promise<{ error: number; limit: number }> {
  const count = rows * columns - first;
  // Some of the bits are NaN.
  const padded = Uint32Array.from({ length: rows * stride }, (_, k) =>
    k % 11 === 3 ? 0x7fc00000 + k : Math.imul(k + 1, 0x9e3779b1),
  );
  const buffers = {
    padded: await gpu.bufferOf(padded, 'padded'),
    rows: await gpu.bufferOf(new Uint32Array(count + 1).fill(7), 'rows'),
  };
  await gpu
    .pass('check unpadded-rows')
    .dispatch(
      await gpu.compile(unpaddedRowsKernel, {}),
      buffers,
      { first, count, columns, stride },
      unpaddedRowsWorkgroups(count),
    )
    .submit();
  const found = new Uint32Array(count + 1);
  await gpu.download(buffers.rows, found);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  const wanted = (k: number) =>
    k < count ? padded[Math.floor((first + k) / columns) * stride + ((first + k) % columns)] : 7;
  return { error: found.filter((value, k) => value !== wanted(k)).length, limit: 0 };
}
