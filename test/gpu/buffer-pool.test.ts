import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BufferPool } from '../../gpu/store.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';

describe.skipIf(noGpu)('buffers that were given back', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

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
