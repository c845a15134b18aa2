import { afterEach, expect, test } from 'vitest';
import { CpuAhead } from '../../../api/devices/cpu-ahead.ts';
import { Session } from '../../../api/session.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

test('a session takes threads that have begun, and closes them', async () => {
  const cpu = CpuAhead.begin({ device: 'cpu', workers: 2 }, false) as CpuAhead;
  opened.push(cpu);
  const session = await Session.create({ device: 'cpu', workers: 2, background: true, ahead: { cpu } });
  expect(cpu.take(() => true)).toBeUndefined();
  await session.opened();
  expect(session.device.description).toMatch(/^2 threads, WebAssembly/);
  expect(session.workers).toBe(2);
  await session.close();
});

test('threads that no session took are ended', async () => {
  const cpu = CpuAhead.begin({ device: 'cpu', workers: 1 }, false) as CpuAhead;
  await cpu[Symbol.asyncDispose]();
  expect(cpu.take(() => true)).toBeUndefined();
});

test('nothing begins ahead under a memory budget, or for several devices in the place of one', () => {
  expect(CpuAhead.begin({ device: 'cpu', workers: 1, memoryBudget: 2 ** 28 }, false)).toBeUndefined();
  expect(CpuAhead.begin({ device: 'cpu', workers: 2, fakeDevices: 2 }, false)).toBeUndefined();
});

test('a wrong number of threads is refused', () => {
  expect(() => CpuAhead.begin({ device: 'cpu', workers: 1000 }, false)).toThrow(
    /workers must be a whole number from 1 to 256|too many open files/,
  );
});
