/** Ranges of files in few requests, which readers share, and a cache of bounded size. */
import { describe, expect, it } from 'vitest';
import { BlockCache } from '../../browser/cached-file.ts';
import { RemoteFile, joinRanges, readRanges } from '../../browser/remote-file.ts';
import { RequestCache, SharedRequest } from '../../browser/shared-request.ts';
import { CancelledError } from '../../engine/errors.ts';

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
