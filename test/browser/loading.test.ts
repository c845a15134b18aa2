/** Loading a model over HTTP: what is read, and files that are missing, cut short, damaged or changed. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openModel } from '../../browser/index.ts';
import { withOwnMemory } from '../../browser/page-device.ts';
import { kernelBytes } from '../../cpu/compile-kernels.ts';
import { ALS, DataError, Session, UsageError } from '../../index.ts';
import { editMetadata } from '../support/edit-metadata.ts';
import { randomRatings } from '../support/ratings.ts';
import { type Asked, PageServer } from './page-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-loading-'));
let server: PageServer;
let url: string;
let session: Session;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 1 });
  const als = new ALS({ rank: 64, maxIter: 1, seed: 2 });
  const model = await als.fit(session.fromRows(randomRatings(5, 900, 700, 12_000)));
  await model.save(join(folder, 'model'));
  server = await PageServer.open(folder);
  url = `${server.url}/model`;
});
beforeEach(() => server.reset());
afterAll(async () => {
  await server.close();
  await session.close();
  rmSync(folder, { recursive: true });
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
    const read = [...server.sent.keys()].sort();
    expect(read).toEqual(['/model/itemCounts/part-00000.parquet', ITEMS, '/model/metadata/part-00000']);
    expect(server.sent.get(ITEMS)).toBeLessThanOrEqual(bytesOf(ITEMS).length);
    await close();
  });

  it('reads whole files from a server that ignores ranges', async () => {
    server.answer = (asked) => end(asked, 200, asked.content);
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
    server.answer = (asked) => asked.path === ITEMS && answer(asked);
    const error = await openModel(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DataError);
    expect((error as Error).message).toContain(message);
    expect((error as DataError).details.file).toContain(ITEMS);
  });

  it('finds a flipped bit anywhere in the items', async () => {
    const whole = bytesOf(ITEMS);
    for (let at = 40; at < whole.length; at += 1 + Math.floor(whole.length / 40)) {
      const changed = Buffer.from(whole);
      changed[at] ^= 64;
      server.answer = (asked) => asked.path === ITEMS && end(asked, 200, changed);
      await expect(openModel(url), `byte ${at}`).rejects.toThrow(DataError);
    }
  });

  it('names the page that a server sends for a file that it does not have', async () => {
    const page = Buffer.from('<!doctype html><title>Shop</title>');
    for (const [path, message] of [
      [METADATA, 'there is no model at this URL: the server sent a page'],
      [ITEMS, 'the file is missing: the model has 700 rows, and 0 were read; the server sent a page'],
    ]) {
      server.answer = (asked) =>
        asked.path === path && end(asked, 200, page, { 'Content-Type': 'text/html' });
      await expect(openModel(url)).rejects.toThrow(message);
    }
  });

  it('reports a file that changes between its requests', async () => {
    server.answer = (asked) => {
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
    server.answer = (asked) =>
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
    await expect(openModel(`${server.url}/${kind.replaceAll(' ', '-')}`)).rejects.toThrow(message);
  });

  it('reports a server that cannot be reached', async () => {
    const down = await PageServer.open(folder);
    const address = `${down.url}/model`;
    await down.close();
    await expect(openModel(address)).rejects.toThrow('the request failed');
  });

  it('ends when it is cancelled', async () => {
    const aborting = new AbortController();
    server.answer = () => {
      aborting.abort();
      return true;
    };
    await expect(openModel(url, { signal: aborting.signal })).rejects.toThrow('abort');
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
