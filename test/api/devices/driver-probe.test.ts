import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { DeviceRequest } from '../../../api/devices/device-request.ts';
import { type Machine, type OpenedDevices, OpeningDevices } from '../../../api/devices/open-devices.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { KnownDrivers } from '../../../gpu/probe/known-driver.ts';
import { explainProbe, type ProbeOutcome, probeWebGpu } from '../../../gpu/probe/probe-webgpu.ts';
import { card, machineWith, openedCard } from '../../support/gpu/machine.ts';

async function opened(device: DeviceRequest, machine: Machine): Promise<OpenedDevices['device']> {
  await using opening = new OpeningDevices({ device, workers: 1 }, machine);
  return (await opening.all()).device;
}

describe('a driver that has served before', () => {
  const folder = mkdtempSync(join(tmpdir(), 'known-driver-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const known = (system = 'driver 1') => new KnownDrivers(folder, system);

  it('is known until it is opened, so that a crash in it is followed by a probe', async () => {
    await known().keep(card);
    expect(known().take()).toEqual(card);
    expect(known().take()).toBeUndefined();
  });

  it('is not known after a change of the system, nor from a file that is damaged or of a computing processor', async () => {
    await known().keep(card);
    expect(known('driver 2').take()).toBeUndefined();
    writeFileSync(join(folder, 'known-driver.json'), '{"format":');
    expect(known().take()).toBeUndefined();
    rmSync(join(folder, 'known-driver.json'));
    await known().keep({ ...card, isFallback: true });
    expect(known().take()).toBeUndefined();
  });

  it.skipIf(process.getuid === undefined)('is not known from a folder that others may write to', async () => {
    await known().keep(card);
    chmodSync(folder, 0o777);
    try {
      expect(known().take()).toBeUndefined();
    } finally {
      chmodSync(folder, 0o700);
    }
    expect(known().take()).toEqual(card);
  });

  it('is noted once its GPU has opened, and not where that failed', async () => {
    const seen: string[] = [];
    const machine = (open: Machine['open']): Machine => ({
      ...machineWith({ adapter: card, messages: '' }, open),
      note: async ({ name }) => void seen.push(name),
    });
    await opened(
      'auto',
      machine(() => Promise.reject(new Error('gone'))),
    );
    expect(seen).toEqual([]);
    await opened(
      'auto',
      machine(async () => openedCard()),
    );
    expect(seen).toEqual(['a card']);
  });

  it.each([
    ['does not open', () => Promise.reject(new Error('gone'))],
    ['computes on the processor', async () => openedCard('a processor', true)],
  ] satisfies [string, Machine['open']][])('is probed, and not noted, where its GPU %s', async (_, open) => {
    const processor = { ...card, name: 'a processor', isFallback: true };
    const machine: Machine = {
      ...machineWith({ adapter: processor, messages: '' }, open),
      known: () => card,
      note: () => Promise.reject(new Error('noted')),
    };
    expect(await opened('auto', machine)).toMatchObject({
      kind: 'cpu',
      reason: 'no GPU: the only adapter, a processor, computes on the processor',
    });
  });
});

describe('a signal while a driver is asked', () => {
  it.each(['auto', 'gpu'] as const)('cancels for any outcome of the probe: %s', async (device) => {
    const stop = new AbortController();
    const probe: Machine['probe'] = async (signal) => {
      stop.abort();
      return signal?.aborted
        ? { failure: 'crash', ending: 'SIGINT', messages: '' }
        : { failure: 'no adapter', messages: '' };
    };
    await using opening = new OpeningDevices(
      { device, workers: 1, signal: stop.signal },
      { ...machineWith({ messages: '' }), probe },
    );
    await expect(opening.all()).rejects.toBeInstanceOf(CancelledError);
  });

  it('ends the probe', async () => {
    expect(await probeWebGpu(AbortSignal.abort())).toMatchObject({ failure: 'error' });
  });
});

describe('the probe', () => {
  const options = process.env.NODE_OPTIONS;
  afterEach(() => {
    if (options === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = options;
  });

  /** The outcome of the probe if the driver first runs this code. */
  function probeBeside(code: string): Promise<ProbeOutcome> {
    process.env.NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`;
    return probeWebGpu();
  }

  it('reports the error that ended it', async () => {
    const outcome = await probeBeside(`throw new Error('no device for you')`);
    expect(explainProbe(outcome, 'linux')).toMatch(
      /The probe failed \(exit code 1\)\. It said: Error: no device for you\.$/,
    );
  });
});
