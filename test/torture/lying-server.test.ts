/** The reader of ranges gets each false answer of `npm run torture`: it gives the right bytes or an error. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchRange } from '../../connectors/http/http-file.ts';
import { patience } from '../../connectors/http/request.ts';
import { DataError } from '../../engine/errors.ts';
import { harmless, lies, LyingServer } from '../support/faults/lying-server.ts';

const versions = [0, 1].map((version) => Buffer.from(`${version}`.repeat(100_000))) as [Buffer, Buffer];
const server = new LyingServer(new Map([['ratings.csv', versions]]));
const usual = { ...patience };
let address = '';

beforeEach(async () => {
  address = await server.open();
  patience.idle = 1000;
});
afterEach(() => {
  server.close();
  Object.assign(patience, usual);
});

test.each(Object.keys(lies))('%s', async (lie) => {
  for (const times of [1, 0]) {
    server.begin({ lie, first: 1, times, size: 100, versioned: ['ETag'] });
    const url = `${address}/ratings.csv`;
    const outcome = await fetchRange(url, { from: 10, to: 90_000 }).catch((error: unknown) => error);
    if (outcome instanceof Error) {
      expect(outcome).toBeInstanceOf(DataError);
      expect(String(outcome)).toContain(url);
      expect(times === 1 && harmless.includes(lie)).toBe(false);
    } else {
      const { bytes, etag, size } = outcome as Awaited<ReturnType<typeof fetchRange>>;
      // The reader of the file compares its size.
      if (lie === '416') {
        expect([bytes.length, size]).toEqual([0, 0]);
        continue;
      }
      const version = lie === 'another file' ? 1 : 0;
      expect(versions[version].subarray(10, 90_000).equals(bytes)).toBe(true);
      if (lie === 'another file') expect(etag).toBe('"1"');
    }
    expect(server.requests).toBeGreaterThan(0);
  }
});
