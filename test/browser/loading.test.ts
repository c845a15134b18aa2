/** Loading a model over HTTP: what is read, and files that are missing, cut short, damaged or changed. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { openModel } from '../../browser/index.ts';
import { withOwnMemory } from '../../browser/page-device.ts';
import { kernelBytes } from '../../cpu/compile-kernels.ts';
import { ALS, DataError, UsageError } from '../../index.ts';
import { editMetadata } from '../support/edit-metadata.ts';
import { randomRatings } from '../support/ratings.ts';
import { type Asked, PageServer, served } from './page-server.ts';
import { BlockCache } from '../../browser/cached-file.ts';
import { RemoteFile, joinRanges, readRanges } from '../../browser/remote-file.ts';
import { RequestCache, SharedRequest } from '../../browser/shared-request.ts';
import { CancelledError } from '../../engine/errors.ts';

const site = served();
const { folder } = site;
let url: string;
beforeAll(async () => {
  const als = new ALS({ rank: 64, maxIter: 1, seed: 2 });
  const model = await als.fit(site.session.fromRows(randomRatings(5, 900, 700, 12_000)));
  await model.save(join(folder, 'model'));
  url = `${site.server.url}/model`;
});
const ITEMS = '/model/itemFactors/part-00000.parquet';
const METADATA = '/model/metadata/part-00000';
const bytesOf = (path: string) => readFileSync(join(folder, path));
const end = ({ response }: Asked, status: number, content: Uint8Array, headers: object = {}) => {
  response.writeHead(status, { ...headers }).end(content);
  return true;
};

describe('openModel', () => {
  it('reads the items alone, each byte at most once, without the factors of users', async () => {
    const { itemCount, close } = await openModel(url).then((page) => ({
      itemCount: page.itemCount,
      close: () => page.close(),
    }));
    expect(itemCount).toBe(700);
    const read = [...site.server.sent.keys()].sort();
    expect(read).toEqual(['/model/itemCounts/part-00000.parquet', ITEMS, '/model/metadata/part-00000']);
    expect(site.server.sent.get(ITEMS)).toBeLessThanOrEqual(bytesOf(ITEMS).length);
    await close();
  });

  it('reads whole files from a server that ignores ranges', async () => {
    site.server.answer = (asked) => end(asked, 200, asked.content);
    const page = await openModel(url);
    expect(page.itemCount).toBe(700);
    await page.close();
  });

  it('reads whole files from another origin whose headers the page cannot see', async () => {
    const hidden = async (address: string, init: RequestInit) => {
      const { status, statusText, body } = await fetch(address, init);
      return new Response(body, { status, statusText });
    };
    const page = await openModel(url, { fetch: hidden });
    expect(page.itemCount).toBe(700);
    await page.close();
  });

  it.each<[string, string, (asked: Asked) => boolean]>([
    [
      'an answer that is cut short',
      'the file is cut short: 10 of 20 bytes arrived',
      (asked) => end(asked, 206, asked.content.subarray(0, 10), { 'Content-Range': 'bytes 0-19/20' }),
    ],
    [
      'a file of which only a beginning was copied',
      'the file is damaged',
      (asked) => end(asked, 200, asked.content.subarray(0, 5000)),
    ],
    ['a file of another kind', 'the file is damaged', (asked) => end(asked, 200, Buffer.alloc(4000, 65))],
    ['an empty file', 'the file is empty or was cut short', (asked) => end(asked, 416, Buffer.alloc(0))],
    ['a refusal', 'the server answers 403 Forbidden', (asked) => end(asked, 403, Buffer.alloc(0))],
    [
      'a connection that breaks off',
      'broke off',
      ({ response, content }) => {
        response.writeHead(200, { 'Content-Length': content.length });
        response.write(content.subarray(0, 99), () => response.destroy());
        return true;
      },
    ],
  ])('reports %s', async (_, message, answer) => {
    site.server.answer = (asked) => asked.path === ITEMS && answer(asked);
    const error = await openModel(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DataError);
    expect((error as Error).message).toContain(message);
    expect((error as DataError).details.file).toContain(ITEMS);
  });

  it('finds a flipped bit anywhere in the items', async () => {
    const whole = bytesOf(ITEMS);
    for (let at = 40; at < whole.length; at += 1 + Math.floor(whole.length / 20)) {
      const changed = Buffer.from(whole);
      changed[at] ^= 64;
      site.server.answer = (asked) => asked.path === ITEMS && end(asked, 200, changed);
      await expect(openModel(url), `byte ${at}`).rejects.toThrow(DataError);
    }
  });

  it('names the page that a server sends for a file that it does not have', async () => {
    const page = Buffer.from('<!doctype html><title>Shop</title>');
    for (const [path, message] of [
      [METADATA, 'there is no model at this URL: the server sent a page'],
      [ITEMS, 'the file is missing: the model has 700 rows, and 0 were read; the server sent a page'],
    ]) {
      site.server.answer = (asked) =>
        asked.path === path && end(asked, 200, page, { 'Content-Type': 'text/html' });
      await expect(openModel(url)).rejects.toThrow(message);
    }
  });

  it('reports a file that changes between its requests', async () => {
    site.server.answer = (asked) => {
      const { path, before, content, request } = asked;
      if (path !== ITEMS || before === 0) return false;
      const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [];
      const range = `bytes ${from}-${to}/${content.length}`;
      return end(asked, 206, content.subarray(Number(from), Number(to) + 1), {
        'Content-Range': range,
        ETag: '"another"',
      });
    };
    await expect(openModel(url)).rejects.toThrow('the file was changed while it was read');
  });

  it('reports a model that is replaced while it is read', async () => {
    site.server.answer = (asked) =>
      asked.path.endsWith('metadata/part-00000') &&
      asked.before > 0 &&
      end(asked, 200, Buffer.from(asked.content.toString().replace('"seed":2', '"seed":3')));
    await expect(openModel(url)).rejects.toThrow('the model was replaced while it was read');
  });

  it.each<[string, string, (target: string) => void]>([
    [
      'without metadata',
      'there is no model at this URL',
      (target) => rmSync(join(target, 'metadata/part-00000')),
    ],
    [
      'with damaged metadata',
      'the metadata are damaged',
      (target) => {
        const file = join(target, 'metadata/part-00000');
        writeFileSync(file, readFileSync(file, 'utf8').replace('"seed":2', '"seed":3'));
      },
    ],
    [
      'without a part',
      'the file is missing: the model has 700 rows, and 0 were read',
      (target) => rmSync(join(target, 'itemFactors/part-00000.parquet')),
    ],
    [
      'with the items of another model',
      'the file is damaged or belongs to another model',
      (target) =>
        writeFileSync(
          join(target, 'itemFactors/part-00000.parquet'),
          bytesOf('/model/itemCounts/part-00000.parquet'),
        ),
    ],
    [
      'without digests, with the items of another rank',
      'a feature vector has 1 values',
      (target) => {
        editMetadata(target, (line) => line.replace(/,"files":\{.*?\}/, ''));
        writeFileSync(
          join(target, 'itemFactors/part-00000.parquet'),
          bytesOf('/model/itemCounts/part-00000.parquet'),
        );
      },
    ],
  ])('refuses a folder %s', async (kind, message, damage) => {
    const target = join(folder, kind.replaceAll(' ', '-'));
    cpSync(join(folder, 'model'), target, { recursive: true });
    damage(target);
    await expect(openModel(`${site.server.url}/${kind.replaceAll(' ', '-')}`)).rejects.toThrow(message);
  });

  it('reports a server that cannot be reached', async () => {
    const down = await PageServer.open(folder);
    const address = `${down.url}/model`;
    await down.close();
    await expect(openModel(address)).rejects.toThrow('the request failed');
  });

  it('ends when it is cancelled', async () => {
    const aborting = new AbortController();
    site.server.answer = () => {
      aborting.abort();
      return true;
    };
    await expect(openModel(url, { signal: aborting.signal })).rejects.toThrow('abort');
  });

  it('ends when it is cancelled within an answer', async () => {
    const aborting = new AbortController();
    site.server.answer = ({ response, content }) => {
      response.writeHead(200, { 'Content-Length': content.length }).write(content.subarray(0, 1));
      return true;
    };
    const fetchHead = async (address: string, init: RequestInit) => {
      const response = await fetch(address, init);
      aborting.abort();
      return response;
    };
    const opening = openModel(url, { signal: aborting.signal, fetch: fetchHead });
    await expect(opening).rejects.toThrow('abort');
  });

  it('says so if the browser has no WebAssembly SIMD', async () => {
    const validate = vi.spyOn(WebAssembly, 'validate').mockReturnValue(false);
    try {
      await expect(openModel(url)).rejects.toThrow(UsageError);
      await expect(openModel(url)).rejects.toThrow('this browser has no WebAssembly SIMD');
    } finally {
      validate.mockRestore();
    }
  });
});

describe('the kernels of a page', () => {
  it.each(['simd', 'relaxed-simd'] as const)('are those of Node but for the memory: %s', (build) => {
    const shared = kernelBytes(build);
    const own = withOwnMemory(shared);
    const changed = [...own.keys()].filter((at) => own[at] !== shared[at]);
    expect(changed).toHaveLength(1);
    const memory = new WebAssembly.Memory({ initial: 2, maximum: 65_536 });
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(own), { env: { memory } });
    expect(Object.keys(exports)).toContain('searchColumns');
    expect(() => withOwnMemory(own)).toThrow('must import one shared memory');
  });
});

/** A file whose byte i is i modulo 251, and the requests for it. */
function countedFile(byteLength: number) {
  const requests: (readonly [number, number])[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const slice = async (from: number, to = byteLength, signal?: AbortSignal) => {
    requests.push([from, to]);
    signals.push(signal);
    await new Promise((resolve) => setImmediate(resolve));
    return Uint8Array.from({ length: to - from }, (_, i) => (from + i) % 251).buffer;
  };
  return { file: { url: 'file', byteLength, slice }, requests, signals };
}

const expected = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => (from + i) % 251);

describe('a file on a server', () => {
  const content = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7) % 251);
  const part = (from: number, to: number) =>
    new Response(content.slice(from, to), {
      status: 206,
      headers: { 'Content-Range': `bytes ${from}-${to - 1}/${content.length}` },
    });
  const whole = () => new Response(content.slice());
  const placeOf = (range: string) => /bytes=(\d*)-(\d+)/.exec(range)?.slice(1).map(Number) ?? [0, 0];

  it.each<[string, (range: string) => Response, requests: number]>([
    ['takes the last bytes for the first', (range) => part(placeOf(range)[0], placeOf(range)[1] + 1), 3],
    ['sends the first bytes for any range', () => part(0, 70_000), 5],
    [
      'has no last bytes',
      (range) => (range.startsWith('bytes=-') ? new Response(null, { status: 416 }) : whole()),
      2,
    ],
    ['does not say which bytes it sends', () => new Response(content.slice(0, 10), { status: 206 }), 2],
    ['ignores ranges', whole, 1],
  ])('has its bytes where the server %s', async (_, answer, most) => {
    let requests = 0;
    const fetch = async (_url: string, { headers }: RequestInit) => {
      requests++;
      const range = new Headers(headers).get('range');
      return range === null ? whole() : answer(range);
    };
    const file = (await RemoteFile.open('file', { fetch, signal: undefined })) as RemoteFile;
    expect(file.byteLength).toBe(content.length);
    for (const [from, to] of [
      [1000, 1010],
      [199_990, 200_000],
    ])
      expect(new Uint8Array(await file.slice(from, to))).toEqual(content.slice(from, to));
    expect(requests).toBeLessThanOrEqual(most);
  });
});

describe('ranges', () => {
  it('near each other share a request', async () => {
    expect(
      joinRanges(
        [
          { from: 90, to: 95 },
          { from: 0, to: 10 },
          { from: 12, to: 12 },
          { from: 14, to: 20 },
          { from: 5, to: 7 },
        ],
        4,
      ),
    ).toEqual([
      { from: 0, to: 20 },
      { from: 90, to: 95 },
    ]);
    const { file, requests } = countedFile(1000);
    const ranges = [
      { from: 300, to: 310 },
      { from: 0, to: 5 },
      { from: 4, to: 4 },
      { from: 295, to: 301 },
    ];
    const read = await readRanges(file, ranges, 8, undefined);
    expect(read.map((bytes) => Array.from(new Uint8Array(bytes)))).toEqual(
      ranges.map(({ from, to }) => expected(from, to)),
    );
    expect(requests).toEqual([
      [0, 5],
      [295, 310],
    ]);
  });

  it('are read in blocks, of which a bounded number of bytes is kept', async () => {
    const { file, requests } = countedFile(100_000);
    const cache = new BlockCache(100, 2000);
    const cached = cache.open(file);
    for (let round = 0; round < 60; round++) {
      const from = (round * 7919) % 99_000;
      const ranges = [
        { from, to: from + 250 },
        { from: 40, to: 60 },
      ];
      const read = await cached.gather(ranges);
      expect(read.map((bytes) => Array.from(bytes))).toEqual(ranges.map((one) => expected(one.from, one.to)));
      expect(cache.blocks.bytes).toBeLessThanOrEqual(2000);
    }
    // The block that each round uses was never removed.
    expect(requests.filter(([from]) => from === 0)).toHaveLength(1);
    const sent = requests.length;
    await cached.slice(40, 60);
    expect(requests).toHaveLength(sent);
  });

  it('of several files do not mix', async () => {
    const cache = new BlockCache(100);
    const [one, other] = [cache.open(countedFile(1000).file), cache.open(countedFile(30).file)];
    expect((await one.slice(20, 60)).byteLength).toBe(40);
    expect((await other.slice(0)).byteLength).toBe(30);
    expect(await one.slice(5, 5)).toEqual(new ArrayBuffer(0));
  });
});

describe('a request of several readers', () => {
  it('is cancelled when all of them are', async () => {
    const { file, signals } = countedFile(1000);
    const cached = new BlockCache(100).open(file);
    const [one, other] = [new AbortController(), new AbortController()];
    const reading = [one, other].map(({ signal }) => cached.slice(0, 10, signal).catch((reason) => reason));
    one.abort();
    expect(await reading[0]).toBeInstanceOf(CancelledError);
    expect(signals[0]?.aborted).toBe(false);
    expect((await reading[1]).byteLength).toBe(10);
    const third = new AbortController();
    const last = cached.slice(500, 510, third.signal).catch((reason) => reason);
    third.abort();
    expect(await last).toBeInstanceOf(CancelledError);
    expect(signals[1]?.aborted).toBe(true);
    expect((await cached.slice(500, 510)).byteLength).toBe(10);
  });

  it('that fails is sent again', async () => {
    const cache = new RequestCache<string, number>(10);
    const failing = new SharedRequest<number>(async () => {
      throw new Error('no answer');
    });
    cache.set('a', failing, 4);
    await expect(failing.wait(undefined)).rejects.toThrow('no answer');
    expect([cache.get('a'), cache.bytes]).toEqual([undefined, 0]);
    const given = new AbortController();
    given.abort();
    await expect(new SharedRequest(async () => 1).wait(given.signal)).rejects.toThrow(CancelledError);
  });
});
