/**
 * The command `worker` as a parent process sees it: docs/reference/worker-protocol.md, training on one host.
 */
import { tableFromIPC, tableToIPC } from 'apache-arrow';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALS, SGD } from '../../index.ts';
import { packageInfo } from '../../api/package-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { rowsOfArrays } from '../support/one-host.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { type Ended, ratingStream, rowsOf, WorkerHere, WorkerParent } from '../support/worker-parent.ts';
import { errorOf, rows, stream, triples } from './fed-workers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { join } from 'node:path';
import { isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';

const folder = temporaryFolder();

const END_MARK = 8;

async function fed(
  opening: JsonObject,
  bytes: Uint8Array = stream,
  told = rows,
  parent: WorkerHere | WorkerParent = new WorkerHere(),
): Promise<Ended> {
  parent.feed(opening, bytes, told);
  return parent.ended;
}

const factorsOf = ({ frames }: Ended, side: string) =>
  rowsOf(frames.filter(({ header }) => header.type === 'factors' && header.side === side));

async function direct(bytes: Uint8Array, trainer: ALS | SGD) {
  const session = await cpuSession({ workers: 1 });
  const { userArrays, itemArrays } = await trainer.fit(session.from(tableFromIPC(bytes).batches));
  return { users: rowsOfArrays(userArrays), items: rowsOfArrays(itemArrays) };
}

describe('a whole feed', () => {
  it.each([
    ['explicit ratings', { rank: 5, maxIter: 3, seed: 7, regParam: 0.05 }],
    ['implicit data', { rank: 4, maxIter: 2, seed: 1, implicitPrefs: true, alpha: 3 }],
  ] as const)('of %s gives the factors of ALS.spark, bit for bit', async (_, params) => {
    const ended = await fed({ params, rows }, stream, rows, new WorkerParent());
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 0, stderr: '' });
    const expected = await direct(stream, ALS.spark(params));
    expect(factorsOf(ended, 'users')).toEqual(expected.users);
    expect(factorsOf(ended, 'items')).toEqual(expected.items);
  });

  it('trains by SGD where the first line asks for it', async () => {
    const params = { rank: 3, maxIter: 4, seed: 7, regParam: 0.05, learningRate: 0.1 };
    const ended = await fed({ algorithm: 'sgd', params, rows });
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 0, stderr: '' });
    const expected = await direct(stream, new SGD({ biases: false, ...params }));
    expect(factorsOf(ended, 'users')).toEqual(expected.users);
    expect(factorsOf(ended, 'items')).toEqual(expected.items);
  });

  it('is told of in frames, from hello to done, and stdout has nothing else', async () => {
    const parent = new WorkerParent();
    parent.feed({ params: { rank: 4, maxIter: 3 }, version: packageInfo().version }, stream, rows);
    const { frames } = await parent.ended;
    expect(parent.rest.length).toBe(0);
    const types = frames.map(({ header }) => header.type);
    expect(types.filter((type) => type !== 'progress' && type !== 'note' && type !== 'warning')).toEqual([
      'hello',
      'device',
      'plan',
      'iteration',
      'iteration',
      'iteration',
      'report',
      'factors',
      'factors',
      'done',
    ]);
    expect(frames[0].header).toMatchObject({
      protocol: 1,
      version: packageInfo().version,
      node: process.versions.node,
    });
    expect(frames[1].header).toMatchObject({ requested: 'cpu', kind: 'cpu', adapter: null });
    const [plan, report] = ['plan', 'report'].map(
      (type) => frames.find(({ header }) => header.type === type)?.header,
    );
    expect(plan).toMatchObject({
      text: expect.stringContaining('update-items'),
      plan: { algorithm: 'als', sizes: { users: 120, items: 70, ratings: rows } },
    });
    expect(report).toMatchObject({
      ratings: rows,
      users: 120,
      items: 70,
      iterations: [{ iteration: 1 }, { iteration: 2 }, { iteration: 3 }],
    });
    expect(report).not.toHaveProperty('model');
    const told = frames.findLast(
      ({ header }) => header.type === 'progress' && header.phase === 'read',
    )?.header;
    expect(told).toMatchObject({ done: rows, unit: 'ratings' });
  });

  it('of 64-bit ids gives factors with 64-bit ids, and columns may have other names', async () => {
    const renamed = tableFromIPC(ratingStream(triples, { wide: true }));
    const ended = await fed(
      { params: { rank: 3, maxIter: 2 }, columns: { user: 'item', item: 'user' }, rows: null },
      tableToIPC(renamed, 'stream'),
    );
    const expected = await direct(
      stream,
      ALS.spark({ rank: 3, maxIter: 2, userCol: 'item', itemCol: 'user' }),
    );
    expect(factorsOf(ended, 'users')).toEqual(expected.users);
    const frame = ended.frames.find(({ header }) => header.type === 'factors')?.payload ?? [];
    expect(String(tableFromIPC(frame).schema.fields[0].type)).toBe('Int64');
  });

  it('leaves no file and starts no process', async () => {
    const parent = new WorkerParent({ folder });
    parent.feed({ params: { rank: 4, maxIter: 3 } }, stream, rows);
    await parent.frame('plan');
    const tasks = `/proc/${parent.child.pid}/task`;
    if (existsSync(tasks))
      for (const task of readdirSync(tasks)) expect(readIfThere(`${tasks}/${task}/children`)).toBe('');
    expect((await parent.ended).code).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('a feed is refused', () => {
  const cut = stream.subarray(0, stream.length - END_MARK);

  it('without its end mark, cut between two batches', async () => {
    const parent = new WorkerParent();
    parent.open({ command: 'train' });
    await parent.frame('device');
    parent.write(cut);
    parent.close();
    const ended = await parent.ended;
    expect(ended.code).toBe(3);
    expect(errorOf(ended)).toMatchObject({
      type: 'error',
      code: 'DATA',
      exitCode: 3,
      summary: expect.stringMatching(/cut off after 3 batches: its end mark is missing/),
      advice: expect.any(String),
    });
    expect(ended.frames.some(({ header }) => header.type === 'iteration')).toBe(false);
  });

  it('without its end mark, though the trailer follows', async () => {
    const ended = await fed({}, cut);
    expect(ended.code).toBe(3);
    expect(String(errorOf(ended).message)).toMatch(/batch 3: it does not begin like a message/);
  });

  it.each([
    ['than the trailer says', { rows: null }, rows - 1, /3,000 ratings arrived, but the trailer says 2,999/],
    [
      'than the first line says',
      { rows: rows + 1 },
      rows,
      /3,000 ratings arrived, but the first line says 3,001/,
    ],
  ] as const)('with another number of rows %s', async (_, opening, told, message) => {
    const ended = await fed(opening, stream, told);
    expect(ended.code).toBe(3);
    expect(String(errorOf(ended).message)).toMatch(message);
  });

  it.each([
    ['without a trailer', (parent: WorkerHere) => parent.close(), 3, /trailer .* is missing/],
    [
      'with a trailer that is none',
      (parent: WorkerHere) => parent.write('{"rows":"many"}\n'),
      3,
      /trailer .* is missing/,
    ],
    [
      'with more behind its trailer',
      (parent: WorkerHere) => parent.write(`{"rows":${rows}}\nmore`),
      2,
      /bytes arrived after the trailer/,
    ],
  ] as const)('%s', async (_, end, code, message) => {
    const parent = new WorkerHere();
    parent.open({ command: 'train', params: { maxIter: 100_000 } });
    await parent.frame('device');
    parent.write(stream);
    end(parent);
    const ended = await parent.ended;
    expect(ended.code).toBe(code);
    expect(String(errorOf(ended).message)).toMatch(message);
  });

  it.each([
    ['a null id', 'user', null, /1 bad row, the first in the feed, row 5: user is null/],
    [
      'a rating that is no number',
      'rating',
      Number.NaN,
      /1 bad row, the first in the feed, row 5: rating is NaN/,
    ],
  ] as const)('with %s', async (_, column, value, message) => {
    const ended = await fed({}, withValue(column, value));
    expect(ended.code).toBe(3);
    expect(String(errorOf(ended).message)).toMatch(message);
  });

  it('without ratings', async () => {
    const ended = await fed({}, ratingStream({ users: [], items: [], ratings: [] }), 0);
    expect(ended.code).toBe(3);
    expect(String(errorOf(ended).message)).toMatch(/no ratings/);
  });

  it('as an Arrow file, whose end is not seen in a stream', async () => {
    const ended = await fed({}, tableToIPC(tableFromIPC(stream), 'file'));
    expect(ended.code).toBe(3);
    expect(String(errorOf(ended).message)).toMatch(/file arrived instead of an Arrow stream/);
  });

  it.each([
    ['another protocol', { protocol: 2 }, /protocol 2, this worker 1/],
    ['another version', { version: '9.9.9' }, /expects factorflow "9.9.9", and this is/],
    ['another algorithm', { algorithm: 'svd' }, /algorithm must be als or sgd, got "?svd/],
    ['blocks of SGD', { command: 'rows', algorithm: 'sgd' }, /algorithm sgd, which the command rows/],
    ['another command', { command: 'fly' }, /command must be train, rows or model/],
    ['an unknown field', { rank: 3 }, /unknown field rank/],
    ['an unknown parameter', { params: { rnak: 3 } }, /rnak/],
    ['a parameter that cannot be used', { params: { alpha: 3 } }, /alpha acts only on implicit data/],
    ['an unknown column', { columns: { usr: 'u' } }, /unknown column usr/],
    ['a column that is not there', { columns: { user: 'who' } }, /who/],
  ] as const)('with %s', async (_, opening, message) => {
    const ended = await fed(opening);
    expect(ended.code).toBe(opening && 'columns' in opening && 'user' in opening.columns ? 3 : 2);
    expect(String(errorOf(ended).message)).toMatch(message);
  });

  it('by a budget of memory that it is beyond', async () => {
    const parent = new WorkerParent({
      flags: ['--device', 'cpu', '--workers', '1', '--memory-budget', '150MiB'],
    });
    parent.feed({ params: { rank: 4 } }, stream, rows);
    const ended = await parent.ended;
    expect(ended.code).toBe(4);
    expect(errorOf(ended)).toMatchObject({
      code: 'CAPACITY',
      exitCode: 4,
      summary: expect.stringMatching(/the memory budget of 150.0 MiB is below/),
      advice: expect.stringMatching(/Give at least/),
    });
  });

  it('that ends before its first line', async () => {
    const parent = new WorkerParent();
    parent.close();
    const ended = await parent.ended;
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(/stdin ended before a first line of JSON arrived/);
  });
});

/** The ratings with another value in row 5, from 1. */
function withValue(column: 'user' | 'rating', value: number | null): Uint8Array {
  const values = triples[column === 'user' ? 'users' : 'ratings'] as (number | null)[];
  const changed = values.map((one, at) => (at === 4 ? value : one));
  return ratingStream({ ...triples, [column === 'user' ? 'users' : 'ratings']: changed });
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    // The thread has ended.
    return '';
  }
}

describe('checkpoints of a worker', () => {
  const params = { rank: 4, maxIter: 100, seed: 7, regParam: 0.05 };

  function worker<Worker extends WorkerHere | WorkerParent>(opening: JsonObject, parent: Worker): Worker {
    parent.feed({ params, ...opening }, stream, rows);
    return parent;
  }

  it.each([
    ...(isDeep ? [['from its own start', null] as const] : []),
    ["from Spark's start", { seed: '-1', userBlocks: 4 }] as const,
  ])(
    'a worker that was killed is continued by another one, with the same factors, %s',
    async (name, sparkStart) => {
      const undisturbed = await worker({ sparkStart }, new WorkerHere()).ended;
      const checkpoints = { dir: join(folder, `checkpoints ${name}`), interval: 5 };
      const killed = worker({ checkpoints, sparkStart }, new WorkerParent());
      while (killed.frames.filter(({ header }) => header.type === 'iteration').length < 12)
        await killed.frame('iteration', killed.frames.length);
      killed.kill();
      await killed.ended;
      expect(readdirSync(checkpoints.dir).some((name) => name.startsWith('checkpoint-'))).toBe(true);
      const { code, frames } = await worker({ checkpoints, sparkStart }, new WorkerParent()).ended;
      expect(code).toBe(0);
      const factors = (of: typeof frames) => rowsOf(of.filter(({ header }) => header.type === 'factors'));
      expect(factors(frames)).toEqual(factors(undisturbed.frames));
      const { resumedFrom = {} } = frames.find(({ header }) => header.type === 'report')?.header ?? {};
      expect((resumedFrom as JsonObject).iteration).toBeGreaterThanOrEqual(5);
    },
  );

  it.each([
    ['a folder', { interval: 1 }, 'checkpoints need a folder dir, got undefined'],
    ['an interval', { dir: folder, interval: 0 }, 'checkpoints need a whole number interval from 1, got 0'],
  ])('refuses checkpoints without %s', async (_, checkpoints, message) => {
    const ended = await worker({ checkpoints }, new WorkerHere()).ended;
    expect(errorOf(ended)).toMatchObject({ code: 'USAGE', message });
  });
});

describe("a start from Spark's factors", () => {
  async function fed(opening: JsonObject, flags?: readonly string[]): Promise<Ended> {
    const parent = flags === undefined ? new WorkerHere() : new WorkerParent({ flags });
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
});
