/** The command `worker` with Spark's initial factors: `sparkStart` of docs/reference/worker-protocol.md. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../engine/json.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { type Ended, rowsOf, WorkerParent } from '../support/worker-parent.ts';
import { errorOf, rows, stream } from './fed-workers.ts';

async function fed(opening: JsonObject, flags?: readonly string[]): Promise<Ended> {
  const parent = new WorkerParent(flags === undefined ? {} : { flags });
  parent.feed(opening, stream, rows);
  return parent.ended;
}

describe('a worker', () => {
  it("starts from the factors of Spark's ALS where the first line asks for it", async () => {
    const of = async (seed: number, userBlocks?: number) => {
      const sparkStart = userBlocks === undefined ? null : { seed: '-5000000000', userBlocks };
      const ended = await fed({ params: { rank: 3, maxIter: 1, seed }, rows, sparkStart });
      expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 0, stderr: '' });
      return rowsOf(
        ended.frames.filter(({ header }) => header.type === 'factors' && header.side === 'users'),
      );
    };
    const [three, again, four, own] = await Promise.all([of(1, 3), of(2, 3), of(1, 4), of(1)]);
    expect(again).toEqual(three);
    expect(four).not.toEqual(three);
    expect(own).not.toEqual(three);
  });

  it.each([
    [{ seed: 1, userBlocks: 1 }, 'sparkStart needs a seed, an int64 as text, got 1'],
    [{ seed: '1e3', userBlocks: 1 }, 'sparkStart needs a seed, an int64 as text, got "1e3"'],
    [{ seed: '1', userBlocks: 0 }, 'sparkStart needs a whole number userBlocks from 1, got 0'],
    ['7', 'sparkStart must be a JSON object, got "7"'],
  ])('refuses the start %o', async (sparkStart, message) => {
    const ended = await fed({ params: { rank: 3, maxIter: 1 }, rows, sparkStart });
    expect(ended.code).toBe(2);
    expect(errorOf(ended).message).toContain(message);
  });

  it.skipIf(noGpu)('starts from them on a GPU', async () => {
    const opening = { params: { rank: 4, maxIter: 3 }, rows, sparkStart: { seed: '5', userBlocks: 3 } };
    const ended = await Promise.all([fed(opening), fed(opening, ['--device', 'gpu', '--workers', '1'])]);
    const [cpu, gpu] = ended.map(({ frames }) =>
      rowsOf(frames.filter(({ header }) => header.type === 'factors' && header.side === 'users')),
    );
    expect(gpu.size).toBe(cpu.size);
    for (const [id, row] of cpu)
      gpu.get(id)?.forEach((value, k) => expect(Math.abs(value - row[k])).toBeLessThan(0.02));
  });
});
