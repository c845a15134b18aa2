import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { ThreadPool } from '../../engine/threads/thread-pool.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

/** Counts the threads that load; a request 'wait' ends once the gate is open, any other at once. */
const code = `
import { threadId, workerData } from 'node:worker_threads';
const { loads, gate } = Array.isArray(workerData) ? workerData.at(-1) : workerData;
Atomics.add(loads, 0, 1);
export default ({ slot, request }) => {
  if (request === 'wait') Atomics.wait(gate, 0, 0);
  return { outcome: { values: { slot, threadId } }, start: 0, milliseconds: 0 };
};
`;
const module = join(folder, 'counts.mjs');
writeFileSync(module, code);

let pool: ThreadPool;
const loads = new Int32Array(new SharedArrayBuffer(4));
const gate = new Int32Array(new SharedArrayBuffer(4));

function openPool(threads: number): ThreadPool {
  loads.fill(0);
  gate.fill(0);
  return (pool = new ThreadPool(pathToFileURL(module), threads, { loads, gate }));
}

function openGate(): void {
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
}

afterEach(async () => {
  openGate();
  await pool.close();
});

const started = () => Atomics.load(loads, 0);
const waits = (count: number) => Array.from({ length: count }, () => pool.run(() => 'wait'));
const valuesOf = async (requests: readonly ReturnType<ThreadPool['run']>[], name: string) =>
  new Set((await Promise.all(requests)).map(({ outcome }) => outcome.values?.[name]));

it('requests one after another need one thread', async () => {
  openPool(8);
  for (let request = 0; request < 20; request++) await pool.run(() => null);
  expect(started()).toBe(1);
});

it('a thread starts for each request that waits, up to the number of the pool', async () => {
  openPool(4);
  const two = waits(2);
  await expect.poll(started, { timeout: 20_000 }).toBe(2);
  const five = waits(5);
  await expect.poll(started, { timeout: 20_000 }).toBe(4);
  openGate();
  expect((await valuesOf([...two, ...five], 'threadId')).size).toBeLessThanOrEqual(4);
  expect(started()).toBe(4);
});

it('requests that run at the same time have slots of their own, and so do threads', async () => {
  openPool(3);
  const requests = waits(3);
  await expect.poll(started, { timeout: 20_000 }).toBe(3);
  openGate();
  expect(await valuesOf(requests, 'slot')).toEqual(new Set([0, 1, 2]));
  const thread = async (slot: number) => {
    const found = await Promise.all(Array.from({ length: 9 }, () => pool.run(() => null)));
    return new Set(
      found.filter((reply) => reply.slot === slot).map(({ outcome }) => outcome.values?.threadId),
    );
  };
  for (const slot of [0, 1, 2]) expect((await thread(slot)).size).toBeLessThanOrEqual(1);
});

it('a request does not wait for a thread that loads when another is free', async () => {
  // The second thread never loads: its module waits for the gate.
  const late = join(folder, 'late.mjs');
  writeFileSync(
    late,
    code.replace('Atomics.add(loads, 0, 1)', 'if (Atomics.add(loads, 0, 1)) Atomics.wait(gate, 0, 0)'),
  );
  loads.fill(0);
  gate.fill(0);
  pool = new ThreadPool(pathToFileURL(late), 2, { loads, gate });
  await pool.run(() => null);
  await Promise.all(Array.from({ length: 3 }, () => pool.run(() => null)));
  openGate();
});

it('a request for each thread reaches those that have started, also a busy one, and starts none', async () => {
  openPool(4);
  const requests = waits(2);
  await expect.poll(started, { timeout: 20_000 }).toBe(2);
  const slots: number[] = [];
  // The second thread takes requests once its message has arrived.
  await new Promise((resolve) => setTimeout(resolve, 50));
  const each = pool.runInEach((slot) => void slots.push(slot));
  openGate();
  await Promise.all([each, ...requests]);
  expect(slots).toEqual([0, 1]);
  expect(started()).toBe(2);
});
