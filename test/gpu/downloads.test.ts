/** Downloads in pieces, on the software adapter. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import { downloadRows } from '../../gpu/copies/matrix-rows.ts';
import type { DeviceMatrix } from '../../gpu/device/resources.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { BULK } from '../../gpu/webgpu/staging.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';

const PIECES = 3;
const range = { offset: 0, bytes: PIECES * BULK.down.bytes };

describe.skipIf(noGpu)('downloads', () => {
  let gpu: Gpu;
  let source: GPUBuffer;
  beforeAll(async () => {
    gpu = await openTestGpu();
    source = await gpu.bufferOf(
      Float32Array.from({ length: range.bytes / 4 }, (_, i) => i),
      'numbers',
    );
  });
  afterAll(() => gpu?.close());

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
