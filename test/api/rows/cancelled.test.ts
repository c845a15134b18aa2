/** Pipelines that are cancelled, hang, or lose a thread. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { col, type Dataset, Session } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const file = join(folder, 'rows.parquet');
const module = new URL('stubborn.ts', import.meta.url).href;

const opened = () => Session.create({ device: 'cpu', workers: 2, splitBytes: 4000 });
const read = (session: Session): Dataset => session.read.parquet(file);

beforeAll(async () => {
  await using session = await opened();
  const rows = session.fromRows(Array.from({ length: 20_000 }, (_, i) => ({ i, x: i / 3 })));
  await rows.write.parquet(file, { rowGroupSize: 500 });
});

describe('a pipeline that is cancelled', () => {
  it('in the middle ends there', async () => {
    await using session = await opened();
    const stop = new AbortController();
    const rows = read(session).mapBatches({ module, name: 'slow' });
    let batches = 0;
    const counted = async () => {
      for await (const _ of await rows.stream({ signal: stop.signal })) if (++batches === 3) stop.abort();
    };
    await expect(counted()).rejects.toMatchObject({ name: 'CancelledError' });
    expect(batches).toBe(3);
  });

  it('by leaving the loop early gives the threads to the next plan', async () => {
    await using session = await opened();
    for await (const _ of read(session).mapBatches({ module, name: 'slow' })) break;
    expect(await read(session).count()).toBe(20_000);
  });

  it('while a function hangs ends, and so does closing the session', async () => {
    const session = await opened();
    const stop = new AbortController();
    const marks = join(folder, 'hanging');
    mkdirSync(marks);
    const hanging = read(session).mapBatches({ module, name: 'hangs', args: { marks } });
    const cancelled = expect(hanging.count({ signal: stop.signal })).rejects.toMatchObject({
      name: 'CancelledError',
    });
    await vi.waitUntil(() => readdirSync(marks).length === 2, { timeout: 120_000 });
    stop.abort();
    await cancelled;
    // Another plan waits for a thread, until closing ends the threads.
    let waits = true;
    const later = read(session).filter(col('i').ge(0)).count();
    later.catch(() => {}).finally(() => (waits = false));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(waits).toBe(true);
    await session.close();
    await expect(later).rejects.toThrow('the session is closed');
  });
});

it('a function that ends its thread gives an error that names the file, and the next plan has a new thread', async () => {
  await using session = await opened();
  await expect(read(session).mapBatches({ module, name: 'ends' }).count()).rejects.toMatchObject({
    name: 'DeviceLostError',
    message: expect.stringContaining('rows.parquet'),
  });
  expect(await read(session).filter(col('i').ge(0)).count()).toBe(20_000);
});
