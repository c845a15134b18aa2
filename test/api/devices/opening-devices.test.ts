/** The whole lifetime of devices: they start to open, are passed to a session or not, and are closed. */
import { expect, test } from 'vitest';
import { type Machine, OpeningDevices } from '../../../api/devices/open-devices.ts';
import { Session } from '../../../api/session.ts';
import { card, machineWith, openedCard } from '../../support/gpu/machine.ts';

/** A machine with a GPU whose driver is known. The GPU opens when `open` resolves; events are recorded. */
function knownMachine(open: Promise<void> = Promise.resolve()): Machine & { readonly events: string[] } {
  const events: string[] = [];
  return {
    ...machineWith({ messages: '' }),
    events,
    known: () => card,
    open: async () => {
      events.push('opening');
      await open;
      return openedCard('a card', false, async () => void events.push('closed'));
    },
    note: async ({ name }) => void events.push(`noted ${name}`),
  };
}

const runOf = (opening: OpeningDevices) =>
  opening.openCpu().run({ kernel: 'rest', params: {}, inputs: {}, outputs: {} });

test('a session takes devices that have begun, and closes them', async () => {
  await using opening = new OpeningDevices({ device: 'cpu', workers: 2, loads: 'read-ratings' });
  const cpu = opening.openCpu();
  const session = await Session.create({ device: 'cpu', workers: 2, opening });
  expect(session.context().executor.devices).toEqual([cpu]);
  await session.opened();
  expect(session.device.description).toMatch(/^2 threads, WebAssembly/);
  expect(session.workers).toBe(2);
  await session.close();
  await expect(runOf(opening)).rejects.toThrow(/session is closed/);
});

test('a session has its CPU while a GPU is being opened, and the GPU later', async () => {
  const open = Promise.withResolvers<void>();
  const machine = knownMachine(open.promise);
  const opening = new OpeningDevices({ device: 'auto', workers: 1 }, machine);
  expect(machine.events).toEqual(['opening']);
  await using session = await Session.create({ workers: 1, opening });
  const places = () => session.context().executor.devices.map(({ info }) => info.place);
  expect([session.opening, places()]).toEqual([true, ['cpu']]);
  open.resolve();
  await Promise.all([session.opened(), session.opened()]);
  expect([session.opening, places()]).toEqual([false, ['cpu', 'gpu:0']]);
  expect(session.device).toMatchObject({ kind: 'gpu', adapter: 'a card' });
});

test('of several devices in the place of one, a session has all from the start', async () => {
  const opening = new OpeningDevices(
    { device: 'auto', workers: 4, fakeDevices: 2 },
    { ...machineWith({ messages: '' }), hasGraphicsDevice: () => false },
  );
  const replaced = opening.openCpu();
  await using session = await Session.create({ workers: 4, fakeDevices: 2, opening });
  const { devices } = session.context().executor;
  expect(devices.map(({ info: { place, parallelism } }) => [place, parallelism])).toEqual([
    ['cpu', 2],
    ['cpu:1', 2],
  ]);
  expect(devices).not.toContain(replaced);
});

test('a session that cannot be created closes the devices', async () => {
  const machine = knownMachine();
  const opening = new OpeningDevices({ device: 'gpu', workers: 1000 }, machine);
  await expect(Session.create({ device: 'gpu', workers: 1000, opening })).rejects.toThrow(
    /workers must be a whole number from 1 to 256|too many open files/,
  );
  expect(machine.events.sort()).toEqual(['closed', 'noted a card', 'opening']);
});

test('threads that no session took are ended', async () => {
  const opening = new OpeningDevices({ device: 'cpu', workers: 1 });
  opening.openCpu();
  await opening.close();
  await expect(runOf(opening)).rejects.toThrow(/session is closed/);
});

test('a GPU that no session took is noted as known once it has opened, and closed', async () => {
  const open = Promise.withResolvers<void>();
  const machine = knownMachine(open.promise);
  const closing = new OpeningDevices({ device: 'auto' }, machine).close();
  expect(machine.events).toEqual(['opening']);
  open.resolve();
  await closing;
  expect(machine.events).toEqual(['opening', 'noted a card', 'closed']);
});

test('a probe under way is given up where no session takes the devices', async () => {
  const machine = {
    ...machineWith({ messages: '' }),
    probe: (signal?: AbortSignal) =>
      new Promise<{ readonly failure: 'crash'; readonly messages: string }>((resolve) =>
        signal?.addEventListener('abort', () => resolve({ failure: 'crash', messages: '' })),
      ),
  };
  const opening = new OpeningDevices({ device: 'gpu', workers: 1 }, machine);
  const all = opening.all();
  await opening.close();
  await expect(all).rejects.toThrow(/cancelled/i);
});

test('a wrong number of threads is refused', () => {
  expect(() => new OpeningDevices({ device: 'cpu', workers: 1000 }).openCpu()).toThrow(
    /workers must be a whole number from 1 to 256|too many open files/,
  );
});
