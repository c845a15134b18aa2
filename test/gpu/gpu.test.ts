import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NORM_ROWS, weightedNormKernel } from '../../gpu/loss/weighted-norm.task.ts';
import { spinKernel, type Gpu } from '../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';

describe.skipIf(noGpu)('a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  it('computes', async () => {
    const rows = 100;
    const stride = 16;
    const shifts = new Float32Array(rows).fill(2);
    const factors = Float32Array.from({ length: rows * stride }, (_, i) => Math.sin(i));
    const groups = Math.ceil(rows / NORM_ROWS);
    const sums = await gpu.buffer(8 * groups, 'sums');
    const kernel = await gpu.compile(weightedNormKernel, {});
    const bindings = {
      shifts: await gpu.bufferOf(shifts, 'shifts'),
      factors: await gpu.bufferOf(factors, 'factors'),
      sums,
    };
    const { bytes } = await gpu
      .pass('norm')
      .dispatch(
        kernel,
        bindings,
        { from_row: 0, to_row: rows, stride, first: 1, second: 1, others: 1 },
        groups,
      )
      .submit({ read: { buffer: sums, bytes: 8 * groups } });
    const sums64 = Float64Array.from(new Float32Array(bytes));
    const of = (first: number) => sums64.filter((_, k) => k % 2 === first).reduce((a, b) => a + b);
    const squares = factors.reduce((a, b) => a + b * b);
    expect(of(0)).toBeCloseTo(2 * squares, 2);
    expect(of(1)).toBeCloseTo(squares, 2);
  });

  it('refuses a kernel whose text is wrong, with the line, and goes on', async () => {
    await expect(gpu.compile({ ...spinKernel, values: () => ({}) }, {})).rejects.toThrow(
      /^kernel spin \{\}: line \d+: unresolved value 'THREADS'\n@compute @workgroup_size\(THREADS\)$/,
    );
    await expect(gpu.compile(weightedNormKernel, {})).resolves.toMatchObject({ label: 'weighted-norm {}' });
  });

  it('reports to a clocked turn when its last kernel ended, where the adapter has a clock', async () => {
    const kernel = await gpu.compile(weightedNormKernel, {});
    const bindings = {
      shifts: await gpu.buffer(16, 'shifts'),
      factors: await gpu.buffer(64, 'factors'),
      sums: await gpu.buffer(16, 'sums'),
    };
    const uniforms = { from_row: 0, to_row: 1, stride: 16, first: 1, second: 1, others: 1 };
    const ended: (number | undefined)[] = [];
    const turns = [false, true, true].map(async (clocked) => {
      const turn: Gpu['turn'] = (gpu.turn = { clocked });
      await gpu.pass('norm').dispatch(kernel, bindings, uniforms, 1).submit();
      ended.push(turn.ended);
    });
    await Promise.all(turns);
    expect(ended[0]).toBeUndefined();
    if (gpu.info.timestamps) {
      expect(ended[1]).toBeGreaterThan(0);
      expect(ended[2]).toBeGreaterThanOrEqual(Number(ended[1]));
    } else expect(ended).toEqual([undefined, undefined, undefined]);
  });
});
