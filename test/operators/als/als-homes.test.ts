/** Factors and ratings whose home is the host come to the device part by part, and give the same model. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AlsOptions, Session } from '../../../index.ts';
import type { AlsGrid, SideGrid } from '../../../operators/als/plan/problem.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { smallAls } from '../../support/small-als.ts';

const side = (q: number, more: Partial<SideGrid> = {}): SideGrid => ({
  q,
  fixed: 'whole',
  factors: 'device',
  ratings: 'device',
  ...more,
});
const grids: Record<string, AlsGrid> = {
  'X at the host, in parts': { users: side(5, { fixed: 'parts', factors: 'host' }), items: side(1) },
  'X at the host, ratings staged': {
    users: side(5, { fixed: 'parts', factors: 'host', ratings: 'host' }),
    items: side(2, { ratings: 'host' }),
  },
  'X in files, in parts': { users: side(5, { fixed: 'parts', factors: 'spill' }), items: side(1) },
  'both in files, ratings staged': {
    users: side(4, { fixed: 'parts', factors: 'spill', ratings: 'host' }),
    items: side(3, { fixed: 'parts', factors: 'spill', ratings: 'host' }),
  },
  'both in files, by vectors': {
    users: side(4, { fixed: 'parts', factors: 'spill', ratings: 'host', sums: 'vectors' }),
    items: side(3, { fixed: 'parts', factors: 'spill', ratings: 'host', sums: 'vectors' }),
  },
  'X in files, Θ on the device, by vectors': {
    users: side(4, { fixed: 'parts', factors: 'spill', sums: 'vectors' }),
    items: side(2, { fixed: 'parts', factors: 'device', sums: 'vectors' }),
  },
  'both at the host, ratings staged': {
    users: side(4, { fixed: 'parts', factors: 'host', ratings: 'host' }),
    items: side(3, { fixed: 'parts', factors: 'host', ratings: 'host' }),
  },
};

const settings: [string, AlsOptions][] = [
  ['explicit', {}],
  ['implicit', { implicitPrefs: true }],
];

const errorOf = smallAls(7);

describe('homes of factors and ratings', () => {
  let cpu: Session;
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => cpu.close());

  it.each(settings)('on a CPU, %s', async (_, options) => {
    const expected = await errorOf(cpu, options);
    for (const [name, grid] of Object.entries(grids))
      expect({ name, difference: Math.abs((await errorOf(cpu, options, grid)) - expected) < 1e-4 }).toEqual({
        name,
        difference: true,
      });
  });

  it.skipIf(noGpu)(
    'on a GPU',
    async () => {
      await using gpu = await Session.create({ device: 'gpu', workers: 1 });
      const expected = await errorOf(cpu, {});
      for (const [name, grid] of Object.entries(grids))
        expect({ name, difference: Math.abs((await errorOf(gpu, {}, grid)) - expected) < 1e-4 }).toEqual({
          name,
          difference: true,
        });
    },
    240_000,
  );
});
