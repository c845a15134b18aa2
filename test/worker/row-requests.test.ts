/** Requests about blocks of rows, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it } from 'vitest';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { ratingStream, rowsOf, WorkerHere } from '../support/worker-parent.ts';
import { HeldBlocks } from '../../api/worker/held-blocks.ts';
import type { RowBlock } from '../../api/worker/row-block.ts';
import { everyNth } from '../support/deep.ts';
import { type RowExchange, RowTraining } from '../support/row-workers.ts';
import { blocksOfIds, outRows } from '../../api/worker/out-rows.ts';

const triples = numberedRatings(2400);

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

describe('a session of rows', () => {
  async function begun(): Promise<WorkerHere> {
    const worker = new WorkerHere();
    open.push(worker);
    worker.open({ command: 'rows', params: { rank: 3 } });
    await worker.frame('device');
    return worker;
  }

  /** The worker ends with an error of this code and message. */
  async function endsWith(worker: WorkerHere, code: number, message: RegExp): Promise<void> {
    const ended = await worker.ended;
    expect(ended.code).toBe(code);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
  }

  it('tells what it holds, and what is missing', async () => {
    const worker = await begun();
    const sums = { ratings: triples.users.length, squares: 9 * triples.users.length };
    const ask = async (request: Parameters<WorkerHere['ask']>[0], payload?: Uint8Array) =>
      (await worker.ask(request, payload)).answer.header;
    expect(await ask({ type: 'solve', block: 'a', fixed: 0, version: 1, ...sums })).toMatchObject({
      missing: 'block',
    });
    expect(await ask({ type: 'load', block: 'a', side: 'users' }, ratingStream(triples))).toMatchObject({
      ratings: triples.users.length,
    });
    expect(await ask({ type: 'state' })).toMatchObject({
      blocks: { a: { side: 'users', built: false, version: null, fixed: null } },
    });
    expect(await ask({ type: 'build', block: 'a', rows: triples.users.length, blocks: 1 })).toMatchObject({
      rows: 120,
      columns: 70,
      ratings: triples.users.length,
      sends: [120],
    });
    expect(await ask({ type: 'send', block: 'a', version: 0, to: 0 })).toMatchObject({ missing: 'previous' });
    expect(await ask({ type: 'solve', block: 'a', fixed: 0, version: 1, ...sums })).toMatchObject({
      missing: 'fixed',
    });
    expect(await ask({ type: 'gram', block: 'a', version: 0 })).toMatchObject({ missing: 'version' });
    const { factors } = await worker.ask({ type: 'start', block: 'a', version: 0, ...sums });
    expect(factors.map(({ header }) => header)).toMatchObject([
      { side: 'users', first: 0, rows: 120, of: 120 },
    ]);
    const sent = await worker.ask({ type: 'send', block: 'a', version: 0, to: 0 });
    expect(sent.answer.header).toMatchObject({ rows: 120 });
    expect(rowsOf(sent.factors)).toEqual(rowsOf(factors));
    expect(await ask({ type: 'send', block: 'a', version: 1, to: 0 })).toMatchObject({ missing: 'previous' });
    expect(await ask({ type: 'loss', block: 'a', version: 0, fixed: 5 })).toMatchObject({ missing: 'fixed' });
    expect(await ask({ type: 'release', block: 'a' })).toMatchObject({ type: 'answer' });
    expect(await ask({ type: 'state' })).toMatchObject({ blocks: {} });
  });

  it('sends all rows where a block needs most of them, and takes those of its own worker', async () => {
    const worker = await begun();
    const sums = { ratings: triples.users.length, squares: 9 * triples.users.length };
    for (const side of ['users', 'items'] as const) {
      await worker.ask({ type: 'load', block: side, side }, ratingStream(triples));
      const { answer } = await worker.ask({
        type: 'build',
        block: side,
        rows: triples.users.length,
        blocks: 2,
        most: 0.5,
      });
      const { rows } = answer.header;
      expect(answer.header).toMatchObject({ sends: [rows, rows] });
    }
    const { factors } = await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
    const send = { type: 'send', block: 'users', version: 0, to: 1 };
    const whole = await worker.ask({ ...send, whole: true });
    expect(whole.answer.header).toMatchObject({ rows: 120, whole: true });
    expect(whole.factors).toEqual([]);
    expect(rowsOf((await worker.ask(send)).factors)).toEqual(rowsOf(factors));
    const take = { type: 'take', block: 'items', from: 'users', to: 0, ...sums };
    expect((await worker.ask({ ...take, version: 5 })).answer.header).toMatchObject({ missing: 'version' });
    const taken = await worker.ask({ ...take, version: 0 });
    expect(taken.answer.header.missing).toBe(undefined);
    const solve = { type: 'solve', block: 'items', fixed: 0, previous: null, ...sums };
    const solved = await worker.ask({ ...solve, version: 1 });
    await worker.ask({ type: 'fixed', block: 'items', version: 0, ...sums }, factors[0].payload);
    const again = await worker.ask({ ...solve, version: 3 });
    expect(rowsOf(solved.factors)).toEqual(rowsOf(again.factors));
  });

  it.each([
    ['an unknown request', [{ type: 'fly', block: 'a' }], 2, /unknown request fly/],
    [
      'a block of another number of ratings',
      [{ type: 'build', block: 'a', rows: 5 }],
      3,
      /2,400 ratings arrived, but the block should have 5/,
    ],
    [
      'ratings for a block that is built',
      [
        { type: 'build', block: 'a', rows: 2400 },
        { type: 'load', block: 'a', side: 'users' },
      ],
      2,
      /built already/,
    ],
    ['a block of two sides', [{ type: 'load', block: 'a', side: 'items' }], 2, /the block a is one of users/],
    ['a share above 1', [{ type: 'build', block: 'a', rows: 2400, most: 2 }], 2, /a most from 0 to 1, got 2/],
    ['no blocks', [{ type: 'build', block: 'a', rows: 2400, blocks: 0 }], 2, /at least one block, got 0/],
    [
      'rows for a block that there is not',
      [
        { type: 'build', block: 'a', rows: 2400, blocks: 3 },
        { type: 'send', block: 'a', version: 0, to: 3 },
      ],
      2,
      /there is no block 3: build named 3/,
    ],
    [
      'rows to send from a block that was built for none',
      [
        { type: 'build', block: 'a', rows: 2400 },
        { type: 'send', block: 'a', version: 0, to: 0 },
      ],
      2,
      /without the number of blocks of the other side/,
    ],
    ['a request without a field', [{ type: 'build', block: 'a' }], 2, /"build" needs a number rows/],
    [
      'a block that is not built',
      [{ type: 'start', block: 'a', version: 0, ratings: 1, squares: 1 }],
      2,
      /not built/,
    ],
  ] as const)('ends at %s', async (_, requests, code, message) => {
    const worker = await begun();
    await worker.ask({ type: 'load', block: 'a', side: 'users' }, ratingStream(triples));
    for (const request of requests)
      worker.request(request, request.type === 'load' ? ratingStream(triples) : undefined);
    await endsWith(worker, code, message);
  });

  it('refuses a stream that is cut between two batches', async () => {
    const worker = await begun();
    const stream = ratingStream(triples);
    worker.request({ type: 'load', block: 'a', side: 'users' }, stream.subarray(0, stream.length - 8));
    await endsWith(worker, 3, /its end mark is missing/);
  });

  it('takes previous rows in several frames, and no rows of other blocks', async () => {
    const worker = await begun();
    const sums = { ratings: 2, squares: 10 };
    const frames: Uint8Array[] = [];
    for (const user of [5, 9, 7]) {
      await worker.ask(
        { type: 'load', block: `one-${user}`, side: 'users' },
        ratingStream({ users: [user], items: [1], ratings: [3] }),
      );
      await worker.ask({ type: 'build', block: `one-${user}`, rows: 1 });
      const { factors } = await worker.ask({ type: 'start', block: `one-${user}`, version: 0, ...sums });
      frames.push(factors[0].payload);
    }
    await worker.ask(
      { type: 'load', block: 'both', side: 'users' },
      ratingStream({ users: [5, 9], items: [1, 1], ratings: [3, 1] }),
    );
    await worker.ask({ type: 'build', block: 'both', rows: 2 });
    const versions: unknown[] = [];
    for (const frame of frames.slice(0, 2)) {
      await worker.ask({ type: 'previous', block: 'both', version: 0, ...sums }, frame);
      const { answer } = await worker.ask({ type: 'state' });
      versions.push((answer.header.blocks as Record<string, { version: unknown }>).both.version);
    }
    expect(versions).toEqual([null, 0]);
    worker.request({ type: 'previous', block: 'both', version: 1, ...sums }, frames[2]);
    await endsWith(worker, 3, /rows that the block does not have/);
  });

  it('ends where rows of the fixed side that a block needs did not come', async () => {
    const worker = await begun();
    const sums = { ratings: 2400, squares: 24_000 };
    await worker.ask({ type: 'load', block: 'u', side: 'users' }, ratingStream(triples));
    await worker.ask({ type: 'build', block: 'u', rows: 2400 });
    // The start of one item, as the users of a block of one row.
    await worker.ask(
      { type: 'load', block: 'one', side: 'users' },
      ratingStream({ users: [triples.items[0]], items: [1], ratings: [1] }),
    );
    await worker.ask({ type: 'build', block: 'one', rows: 1 });
    const { factors } = await worker.ask({ type: 'start', block: 'one', version: 0, ...sums });
    await worker.ask({ type: 'fixed', block: 'u', version: 0, ...sums }, factors[0].payload);
    worker.request({ type: 'solve', block: 'u', fixed: 0, previous: null, version: 1, ...sums });
    await endsWith(worker, 3, /69 of the 70 rows of the fixed side that the block needs did not come/);
  });

  it.each([
    ['biases', true],
    ['regOffset', 3],
  ] as const)('refuses %s', async (name, value) => {
    const worker = new WorkerHere();
    worker.open({ command: 'rows', params: { [name]: value } });
    await endsWith(worker, 2, new RegExp(`${name} cannot be used on blocks of rows`));
  });

  it('ends when stdin does', async () => {
    const worker = await begun();
    await worker.ask({ type: 'state' });
    worker.close();
    expect((await worker.ended).code).toBe(130);
  });
});

describe('blocks that do not fit the memory together', () => {
  const BLOCKS = 4;
  const params = { rank: 64, maxIter: 2, seed: 3, regParam: 0.05 };
  const triples = numberedRatings(20_000, { users: 3000, items: 200 });

  const open: { kill(): void }[] = [];
  afterEach(() => {
    for (const one of open.splice(0)) one.kill();
  });

  /** Trains with one worker for all blocks. */
  async function trained(exchange: RowExchange, budget?: string) {
    const flags = ['--device', 'cpu', '--workers', '1', ...(budget ? ['--memory-budget', budget] : [])];
    const rows = new RowTraining({ ...params }, triples, BLOCKS, {
      flags,
      exchange,
      precision: 'float16',
      processes: 1,
    });
    open.push(rows);
    await rows.start();
    await rows.iterate(true);
    const { missing } = rows;
    return { factors: { users: rows.factors('users'), items: rows.factors('items') }, missing };
  }

  describe('a worker with several blocks', () => {
    it.each(everyNth(['shuffle', 'equations'] as const, 2))(
      'gives up rows, then ratings, where they do not fit, and the factors are the same with the exchange %s',
      async (exchange) => {
        const all = await trained(exchange);
        expect(all.missing).not.toHaveProperty('previous');
        const some = await trained(exchange, '219MiB');
        expect(some.missing).toMatchObject({ previous: expect.any(Number) as number });
        expect(some.missing).not.toHaveProperty('block');
        const one = await trained(exchange, '216MiB');
        expect(one.missing).toMatchObject({ block: expect.any(Number) as number });
        expect(some.factors).toEqual(all.factors);
        expect(one.factors).toEqual(all.factors);
      },
    );

    it('gives up the fixed rows of a block that it gives up', async () => {
      const forgotten: string[] = [];
      const blockOf = (name: string) =>
        ({
          bytes: { kept: 60, rows: 0, loading: 0, solving: 0 },
          forget: async () => void forgotten.push(name),
          name,
        }) as unknown as RowBlock & { readonly name: string };
      const drop = async (block: unknown) =>
        void forgotten.push(`fixed of ${(block as { name: string }).name}`);
      const blocks = new HeldBlocks(100, { drop });
      for (const name of ['a', 'b']) blocks.add(name, blockOf(name));
      await blocks.makeRoom('build', 'b');
      expect(forgotten).toEqual(['fixed of a', 'a']);
      expect(blocks.get('a')).toBeUndefined();
    });
  });
});

describe('rows for other blocks', () => {
  const int32 = (...values: number[]) => ({ type: 'int32' as const, values: Int32Array.from(values) });
  const int64 = (...values: bigint[]) => ({
    type: 'int64' as const,
    halves: new Int32Array(BigInt64Array.from(values).buffer),
  });

  describe('the block of an id', () => {
    // RatingEncoderTest.java has the same numbers.
    it('is the one to which the plugin sends its ratings', () => {
      const ids = [0, 1, 2, 3, 100, -1, -7, 1_000_000, 2_147_483_647, -2_147_483_648];
      expect([...blocksOfIds(int32(...ids), 3)]).toEqual([0, 2, 2, 2, 0, 0, 0, 2, 2, 2]);
      expect([...blocksOfIds(int32(...ids), 256)]).toEqual([0, 223, 191, 95, 115, 222, 222, 122, 222, 0]);
    });

    it('is the same for int32 and int64', () => {
      const ids = [0, 1, -1, 77, -123_456, 2_147_483_647, -2_147_483_648];
      expect(blocksOfIds(int64(...ids.map(BigInt)), 7)).toEqual(blocksOfIds(int32(...ids), 7));
    });

    it('depends on the upper half of an int64', () => {
      const high = Array.from({ length: 64 }, (_, i) => (BigInt(i) << 32n) | 5n);
      expect(new Set(blocksOfIds(int64(...high), 7)).size).toBe(7);
    });

    it('is about evenly distributed, also for even ids', () => {
      const counts = new Uint32Array(4);
      for (const block of blocksOfIds(int32(...Array.from({ length: 4000 }, (_, i) => 2 * i)), 4))
        counts[block]++;
      for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
    });
  });

  describe('the rows that other blocks need', () => {
    const block = (rows: readonly (readonly number[])[]) => {
      const offsets = Int32Array.from([0, ...rows.map((_, i) => rows.slice(0, i + 1).flat().length)]);
      const indices = Uint32Array.from(rows.flat());
      const ref = { name: 'b', partition: 0, version: 0 };
      const values = new Float32Array(indices.length);
      return { ref, rows: rows.length, ratings: indices.length, offsets, indices, values };
    };

    it('are those with a rating in one of their columns, once and ascending', () => {
      const owners = Uint32Array.of(0, 1, 1, 3);
      const lists = outRows(block([[0, 1], [1, 2], [3], [0, 1, 2, 3]]), owners, 4);
      expect(lists.map((list) => [...list])).toEqual([[0, 3], [0, 1, 3], [], [2, 3]]);
    });

    it('are none for a block without ratings', () => {
      expect(outRows(block([]), new Uint32Array(0), 2).map((list) => list.length)).toEqual([0, 0]);
    });
  });
});
