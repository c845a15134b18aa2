/** ALS with ratings and factors in files has the bits of the same grid in memory. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { comparedMemory } from '../../../api/reports/training-report.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { HOST, SPILL } from '../../../engine/plan/place.ts';
import { planDevices } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { andThen } from '../../../engine/stream/logical-plan.ts';
import { type AlsOptions, Session } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import type { SideGrid } from '../../../operators/als/plan/problem.ts';
import { trainAls } from '../../../operators/als/train.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { sortRatings } from '../../../operators/ratings/sort-ratings.ts';
import { factorsOfRows } from '../../../operators/training/model-rows.ts';
import { batchOf, randomRatings } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

const rows = randomRatings(5, 120, 70, 3000);
const batch = batchOf({
  user: { type: 'int32', values: rows.map(({ user }) => user) },
  item: { type: 'int32', values: rows.map(({ item }) => item) },
  rating: { type: 'float32', values: rows.map(({ rating }) => rating) },
});

const parts = { users: 5, items: 3 };
type Home = Omit<SideGrid, 'q'>;
type Homes = Readonly<Record<'users' | 'items', Home>>;

/** Trains with ratings in files if the homes have them there. */
async function trained(homes: Homes, options: AlsOptions) {
  await using session = await Session.create({ device: 'cpu', workers: 2, spillDir: folder });
  const params = { ...checkAlsParams({ rank: 6, maxIter: 2, solver: 'cg', ...options }) };
  const inFiles = homes.users.ratings === 'spill';
  return await Holdings.within(session.context(), async (ctx) => {
    const selected = andThen(
      session.from([batch]).plan,
      new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }),
    );
    const indexed = await readRatings(selected, inFiles ? { rowsInMemory: 0 } : {}, ctx);
    const cut = inFiles ? { fileParts: parts } : undefined;
    const sorted = await sortRatings(indexed, { duplicates: 'keep', cut }, ctx);
    const { users, items } = indexed;
    const profile = { users: keyCount(users), items: keyCount(items), ratings: sorted.byUser.ratings };
    const devices = planDevices(ctx.executor);
    const grid = {
      users: { ...homes.users, q: parts.users },
      items: { ...homes.items, q: parts.items },
    };
    const plan = planAls(profile, params, devices, undefined, { grid });
    const {
      sides,
      iterations,
      plan: ran,
    } = await trainAls(
      { byUser: sorted.byUser, byItem: sorted.byItem, users, items },
      sizedParams(params, profile),
      { devices: devices.compute, plan: () => plan },
      ctx,
    );
    return { ...factorsOfRows(sides), losses: iterations.map(({ loss }) => loss), ran };
  });
}

const vectors = { fixed: 'parts', sums: 'vectors' } as const;
const equations = { fixed: 'parts' } as const;

describe('ratings and factors in files', () => {
  it.each<[string, Record<'users' | 'items', Pick<Home, 'fixed' | 'sums'>>, AlsOptions]>([
    ['both sides in parts, by vectors', { users: vectors, items: vectors }, {}],
    ['both sides in parts, by equations', { users: equations, items: equations }, { biases: false }],
  ])('have the bits of the same grid in memory: %s', async (_, ways, options) => {
    const homes = (home: 'device' | 'spill'): Homes => {
      const side = (one: 'users' | 'items'): Home => ({
        ...ways[one],
        factors: ways[one].fixed === 'parts' ? home : 'device',
        ratings: home,
      });
      return { users: side('users'), items: side('items') };
    };
    const inMemory = await trained(homes('device'), options);
    const inFiles = await trained(homes('spill'), options);
    // Sums over ratings, such as the loss's constant, add the parts in another order.
    inFiles.losses.forEach((loss, i) => expect(loss / inMemory.losses[i]).toBeCloseTo(1, 12));
    expect(inFiles.userFactors).toEqual(inMemory.userFactors);
    expect(inFiles.itemFactors).toEqual(inMemory.itemFactors);
    expect(inMemory.ran.memory[SPILL]).toBeUndefined();
    expect(inFiles.ran.memory[SPILL]).toBeGreaterThan(2 * 8 * rows.length);
    for (const [place, { planned, measured }] of Object.entries(comparedMemory(inFiles.ran)))
      if (place !== HOST) expect(measured ?? 0).toBeLessThanOrEqual(1.1 * planned);
    expect(readdirSync(folder)).toEqual([]);
  });
});
