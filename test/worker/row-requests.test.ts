/** Requests about blocks of rows, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it } from 'vitest';
import type { AlsOptions } from '../../index.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { ratingStream, rowsOf, WorkerParent } from '../support/worker-parent.ts';

const triples = numberedRatings(2400);

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

describe('a session of rows', () => {
  async function begun(params: AlsOptions = { rank: 3 }): Promise<WorkerParent> {
    const worker = new WorkerParent();
    open.push({ kill: () => worker.child.kill('SIGKILL') });
    worker.write(`${JSON.stringify({ protocol: 1, command: 'rows', params })}\n`);
    await worker.frame('device');
    return worker;
  }

  it('tells what it holds, and what is missing', async () => {
    const worker = await begun();
    const sums = { ratings: triples.users.length, squares: 9 * triples.users.length };
    const ask = async (request: Parameters<WorkerParent['ask']>[0], payload?: Uint8Array) =>
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
    const ended = await worker.ended;
    expect(ended.code).toBe(code);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
  });

  it('refuses a stream that is cut between two batches', async () => {
    const worker = await begun();
    const stream = ratingStream(triples);
    worker.request({ type: 'load', block: 'a', side: 'users' }, stream.subarray(0, stream.length - 8));
    const ended = await worker.ended;
    expect(ended.code).toBe(3);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(/its end mark is missing/);
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
    const ended = await worker.ended;
    expect(ended.code).toBe(3);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(/rows that the block does not have/);
  });

  it.each([
    [
      'rows of the fixed side that a block needs did not come',
      3,
      /69 of the 70 rows of the fixed side that the block needs did not come/,
    ],
  ] as const)('ends where %s', async (_, code, message) => {
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
    const ended = await worker.ended;
    expect(ended.code).toBe(code);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
  });

  it.each([
    ['biases', true],
    ['regOffset', 3],
  ] as const)('refuses %s', async (name, value) => {
    const worker = new WorkerParent();
    worker.write(`${JSON.stringify({ protocol: 1, command: 'rows', params: { [name]: value } })}\n`);
    const ended = await worker.ended;
    expect(ended.code).toBe(2);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(
      new RegExp(`${name} cannot be used on blocks of rows`),
    );
  });

  it('ends when stdin does', async () => {
    const worker = await begun();
    await worker.ask({ type: 'state' });
    worker.close();
    const ended = await worker.ended;
    expect({ code: ended.code, signal: ended.signal }).toEqual({ code: 130, signal: null });
  });
});
