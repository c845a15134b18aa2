import { describe, expect, it } from 'vitest';
import { FreshMemory } from '../../gpu/webgpu/acquire.ts';

describe('fresh memory', () => {
  it.each([0, 1, 1000, 5_000_001])(
    'of %i values is zero, and keeps what is written once it is ready',
    async (length) => {
      const memory = new FreshMemory(length);
      expect(memory.values.length).toBe(length);
      const step = 1_000_000;
      // Backwards, so that the last pieces are awaited first.
      for (let from = Math.floor(Math.max(0, length - 1) / step) * step; from >= 0; from -= step) {
        const to = Math.min(length, from + step);
        await memory.ready(from, to);
        expect(memory.values.subarray(from, to).every((value) => value === 0)).toBe(true);
        for (let i = from; i < to; i++) memory.values[i] = i + 1;
      }
      await memory.ready(0, length);
      expect(memory.values.every((value, i) => value === Math.fround(i + 1))).toBe(true);
    },
  );
});
