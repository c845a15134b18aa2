import { addPacked, addUnpacked, packRowsKernel, unpackRowsKernel } from '../../copies/packed-rows.ts';
import { strideOf } from '../../device/resources.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { halfBits, halfValue } from '../support/float16.ts';

export const packedRowsChecks: readonly KernelCheck[] = [
  { name: packRowsKernel.name, variant: 'to 8 bits and back', run: checkRounding },
  { name: unpackRowsKernel.name, variant: 'to 8 bits and back, placed after other rows', run: checkRounding },
];

const ROWS = 37;
const BEFORE = 3;

/**
 * Rounds a matrix to 8 bits and back, into another matrix from row BEFORE on. An element may differ by half a
 * step, 1/254 of its column's largest |x|, and by the rounding to float16. `error`: the largest difference in
 * these units. The first BEFORE rows must not change.
 */
async function checkRounding(gpu: Gpu): Promise<{ error: number; limit: number }> {
  const columns = 20;
  const stride = strideOf(columns);
  const value = (row: number, column: number) =>
    column === 5 || column >= columns ? 0 : (((row * 31 + column * 17) % 101) - 50) / (1 + column);
  const words = (rows: number, of: (row: number, column: number) => number) =>
    new Uint32Array(
      Uint16Array.from({ length: rows * stride }, (_, at) =>
        halfBits(of(Math.floor(at / stride), at % stride)),
      ).buffer,
    );
  const [half, target] = [
    await gpu.bufferOf(words(ROWS + 1, value), 'half'),
    await gpu.bufferOf(
      words(BEFORE + ROWS + 1, () => 1),
      'target',
    ),
  ];
  const pass = gpu.pass('check pack-rows');
  const packed = await addPacked(gpu, pass, { rows: ROWS, stride, half });
  await addUnpacked(gpu, pass, { packed, rows: ROWS }, { stride, half: target }, BEFORE);
  await pass.submit();
  const found = new Uint16Array((BEFORE + ROWS) * stride);
  await gpu.download(target, found);
  for (const buffer of [half, target]) buffer.destroy();
  let error = 0;
  for (let column = 0; column < stride; column++) {
    const rows = Array.from({ length: ROWS }, (_, row) => halfValue(halfBits(value(row, column))));
    const largest = Math.max(...rows.map(Math.abs));
    rows.forEach((x, row) => {
      const difference = Math.abs(halfValue(found[(BEFORE + row) * stride + column]) - x);
      error = Math.max(error, largest === 0 ? difference : difference / (largest / 254 + largest / 2048));
    });
    for (let row = 0; row < BEFORE; row++)
      error = Math.max(error, Math.abs(halfValue(found[row * stride + column]) - 1));
  }
  return { error, limit: 1.01 };
}
