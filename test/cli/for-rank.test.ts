import { expect, it } from 'vitest';
import { forRank } from '../../cli/sessions/for-rank.ts';

it('takes the CPU for ranks that no GPU trains, unless a device is named', () => {
  expect(forRank({ device: 'auto', rank: 513, seed: 1 })).toEqual({ device: 'cpu', rank: 513, seed: 1 });
  expect(forRank({ device: 'auto', rank: 512 }).device).toBe('auto');
  expect(forRank({ device: 'auto' }).device).toBe('auto');
  expect(forRank({ device: 'gpu', rank: 1024 }).device).toBe('gpu');
});
