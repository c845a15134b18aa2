import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import { kernelTimes } from '../../gpu/checks/check-kernels.task.ts';
import { runTask } from '../../gpu/checks/support/run-kernel.ts';
import { downloadRows } from '../../gpu/copies/matrix-rows.ts';
import type { DeviceMatrix } from '../../gpu/device/resources.ts';
import { kernelTexts } from '../../gpu/generated/kernels-wgsl.ts';
import { NORM_ROWS, weightedNormKernel } from '../../gpu/loss/weighted-norm.task.ts';
import { BufferPool } from '../../gpu/store.ts';
import { spinKernel, type Gpu } from '../../gpu/webgpu/gpu.ts';
import type { KernelDescriptor } from '../../gpu/webgpu/kernel.ts';
import { BULK } from '../../gpu/webgpu/staging.ts';
import { floatClasses, LEAST_NORMAL } from '../support/float-classes.ts';
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
    const matrix = await gpu.bufferOf(factors, 'factors');
    const bindings = {
      shifts: await gpu.bufferOf(shifts, 'shifts'),
      factors: matrix,
      prior: matrix,
      sums,
    };
    const { bytes } = await gpu
      .pass('norm')
      .dispatch(
        kernel,
        bindings,
        { from_row: 0, to_row: rows, stride, first: 1, second: 1, others: 1, drawn: 0 },
        groups,
      )
      .submit({ read: { buffer: sums, bytes: 8 * groups } });
    const sums64 = Float64Array.from(new Float32Array(bytes));
    const of = (first: number) => sums64.filter((_, k) => k % 2 === first).reduce((a, b) => a + b);
    const squares = factors.reduce((a, b) => a + b * b);
    expect(of(0)).toBeCloseTo(2 * squares, 2);
    expect(of(1)).toBeCloseTo(squares, 2);
  });

  const spin = async () => {
    const kernel = await gpu.compile(spinKernel, {});
    await gpu
      .pass('spin')
      .dispatch(kernel, { result: await gpu.scratch('result', 16) }, { rounds: 100 }, 1)
      .submit();
  };
  const times = async (run: boolean) => (await runTask(gpu, kernelTimes, { run }, {})).values;

  it('gives the times of timed kernels once', async () => {
    await spin();
    expect(await times(true)).toEqual({});
    await spin();
    await spin();
    const taken = await times(false);
    expect(Object.keys(taken ?? {})).toEqual(gpu.info.timestamps ? ['spin'] : []);
    for (const milliseconds of Object.values(taken ?? {})) expect(milliseconds).toBeGreaterThan(0);
    await spin();
    expect(await times(false)).toEqual({});
  });

  it('refuses a kernel whose text is wrong, with the line, and goes on', async () => {
    await expect(
      gpu.compile({ ...spinKernel, values: () => ({}) } as KernelDescriptor, { wrong: true }),
    ).rejects.toThrow(
      /^kernel spin \{"wrong":true\}: line \d+: unresolved value 'THREADS'\n@compute @workgroup_size\(THREADS\)$/,
    );
    await expect(gpu.compile(weightedNormKernel, {})).resolves.toMatchObject({ label: 'weighted-norm {}' });
  });

  it('reports to a clocked turn when its last kernel ended, where the adapter has a clock', async () => {
    const kernel = await gpu.compile(weightedNormKernel, {});
    const bindings = {
      shifts: await gpu.buffer(16, 'shifts'),
      factors: await gpu.buffer(64, 'factors'),
      prior: await gpu.buffer(64, 'prior'),
      sums: await gpu.buffer(16, 'sums'),
    };
    const uniforms = { from_row: 0, to_row: 1, stride: 16, first: 1, second: 1, others: 1, drawn: 0 };
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

  it('the tests of numbers in shaders know every class of float32', async () => {
    const numbers = Float32Array.of(...floatClasses, Infinity, -Infinity, NaN);
    const buffer = await gpu.bufferOf(numbers, 'numbers');
    const module = gpu.device.createShaderModule({
      code: `${kernelTexts['parts/finite']}
        @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3u) {
          let x = bitcast<f32>(numbers[group.x]);
          numbers[group.x] = u32(is_finite(x)) + 2 * u32(is_positive(x)) + 4 * u32(goes_on(x));
        }`,
    });
    const pipeline = gpu.device.createComputePipeline({ layout: 'auto', compute: { module } });
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(
      0,
      gpu.device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer } }],
      }),
    );
    pass.dispatchWorkgroups(numbers.length);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    const found = new Uint32Array(numbers.length);
    await gpu.download(buffer, found);
    const wrong = [...numbers].filter((x, i) => {
      const finite = Number.isFinite(x);
      const expected = Number(finite) + 2 * Number(finite && x > 0) + 4 * Number(!finite || x > 0);
      // A GPU may take a subnormal number as 0 in x > 0.
      const mask = x !== 0 && Math.abs(x) < LEAST_NORMAL ? 3 : 7;
      return ((found[i] ^ expected) & mask) !== 0;
    });
    expect(wrong).toEqual([]);
  });

  describe('buffers that were given back', () => {
    it('serve requests for about the same number of bytes, zeroed', async () => {
      const pool = new BufferPool(gpu);
      const part = await pool.take(1_000_000, 'part');
      expect([part.size >= 1_000_000, part.size <= 1_016_000]).toEqual([true, true]);
      await gpu.upload(part, new Float32Array(250_000).fill(7));
      pool.give(part);
      const larger = await pool.take(1_100_000, 'larger');
      expect(larger).not.toBe(part);
      const next = await pool.take(1_003_000, 'the next part');
      expect(next).toBe(part);
      const content = new Float32Array(250_750).fill(9);
      await gpu.download(next, content);
      expect(content.every((value) => value === 0)).toBe(true);
      pool.give(next);
      pool.give(larger);
      pool.trim();
    });

    it('go where a little larger ones are needed, so that no two of nearly the same size are kept', async () => {
      const pool = new BufferPool(gpu);
      const part = await pool.take(1_000_000, 'part');
      pool.give(part);
      const larger = await pool.take(1_020_000, 'larger');
      expect(larger.size).toBeGreaterThanOrEqual(1_020_000);
      pool.give(larger);
      expect(await pool.take(1_000_000, 'the part again')).toBe(larger);
      larger.destroy();
    });

    it('are as large as a buffer may be, and no larger', async () => {
      const info = { ...gpu.info, limits: { ...gpu.info.limits, bindingBytes: 1_000_016 } };
      const pool = new BufferPool({
        device: gpu.device,
        info,
        buffer: (bytes, label) => gpu.buffer(bytes, label),
      });
      const buffer = await pool.take(1_000_010, 'all');
      expect(buffer.size).toBe(1_000_016);
      buffer.destroy();
    });
  });

  describe('downloads', () => {
    const PIECES = 3;
    const range = { offset: 0, bytes: PIECES * BULK.down.bytes };
    let source: GPUBuffer;
    beforeAll(async () => {
      source = await gpu.bufferOf(
        Float32Array.from({ length: range.bytes / 4 }, (_, i) => i),
        'numbers',
      );
    });

    it('take each piece once, in order, when it is ready', async () => {
      const calls: string[] = [];
      const ready = async (at: number, bytes: number) => void calls.push(`ready ${at} ${bytes}`);
      await gpu.downloadPieces(source, range, {
        ready,
        take: (piece, at) => void calls.push(`take ${at} ${piece.byteLength} ${new Float32Array(piece)[0]}`),
      });
      const { bytes } = BULK.down;
      expect(calls).toEqual(
        Array.from({ length: PIECES }, (_, k) => [
          `ready ${k * bytes} ${bytes}`,
          `take ${k * bytes} ${bytes} ${(k * bytes) / 4}`,
        ]).flat(),
      );
    });

    it('that fail leave no piece on its way, and later ones go on', async () => {
      const taken: number[] = [];
      const take = (_: ArrayBuffer, at: number) => {
        taken.push(at);
        if (at === 0) throw new Error('no room for it');
      };
      await expect(gpu.downloadPieces(source, range, { take })).rejects.toThrow('no room for it');
      expect(taken).toHaveLength(PIECES);
      const numbers = new Float32Array(range.bytes / 4);
      for (let n = 0; n < BULK.down.buffers; n++) await gpu.download(source, numbers.fill(0));
      expect(numbers.every((value, i) => value === i)).toBe(true);
    });

    it('of several matrices at once, with and without padding, have their bits', async () => {
      const matrices: { readonly values: Float32Array; readonly matrix: DeviceMatrix }[] = [];
      for (const [rows, columns] of [
        [700, 16],
        [300_000, 16],
        [299_999, 5],
        [1, 10],
        [65_536, 80],
      ]) {
        const stride = 16 * Math.ceil(columns / 16);
        const values = Float32Array.from({ length: rows * stride }, (_, i) =>
          i % stride < columns ? rows + i : 0,
        );
        matrices.push({
          values,
          matrix: { rows, columns, stride, values: await gpu.bufferOf(values, `${rows} x ${columns}`) },
        });
      }
      const { now } = gpu.takeMemory();
      const fetched = await Promise.all(matrices.map(({ matrix }) => downloadRows(gpu, matrix)));
      // Plans do not count memory for transfers to the host.
      expect(gpu.takeMemory()).toEqual({ now, peak: now });
      for (const [
        k,
        {
          values,
          matrix: { columns, stride },
        },
      ] of matrices.entries())
        expect(
          fetched[k].every((value, i) => value === values[Math.floor(i / columns) * stride + (i % columns)]),
        ).toBe(true);
    });

    it('whose device is lost before a piece is ready take nothing more', async () => {
      const other = await openTestGpu();
      const numbers = await other.bufferOf(new Float32Array(range.bytes / 4), 'numbers');
      const taken: number[] = [];
      const ready = async (at: number) => {
        if (at === 0) return;
        other.device.destroy();
        await other.device.lost;
      };
      await expect(
        other.downloadPieces(numbers, range, { ready, take: (_, at) => void taken.push(at) }),
      ).rejects.toBeInstanceOf(DeviceLostError);
      expect(taken).toEqual([0]);
      await other.close();
    });
  });
});
