/** Which devices a session gets, and that no driver can spoil a run on the CPU. */
import { afterEach, describe, expect, it } from 'vitest';
import { type DeviceName, type Machine, type OpenedDevices, openDevices } from '../../api/open-devices.ts';
import { trainingDevice } from '../../api/training-device.ts';
import { CancelledError, UsageError } from '../../engine/errors.ts';
import { GpuDevice } from '../../gpu/device.ts';
import { explainProbe } from '../../gpu/probe/explain-probe.ts';
import { hasGraphicsDevice } from '../../gpu/probe/graphics-device.ts';
import { type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';
import { noGpu } from '../support/open-gpu.ts';

const card = { name: 'a card', vendor: 'v', architecture: 'a', isFallback: false, features: [] };

function machineWith(outcome: ProbeOutcome, open: Machine['open'] = () => Promise.reject(new Error('nobody asked for it'))): Machine {
  return { hasGraphicsDevice: () => true, probe: async () => outcome, open };
}

async function opened(device: DeviceName, machine: Machine): Promise<OpenedDevices['device']> {
  const { devices, device: found } = await openDevices({ device, workers: 1 }, machine);
  for (const each of devices) await each.close();
  return found;
}

describe('device auto', () => {
  it('does not even look where the system has no graphics device', async () => {
    const machine: Machine = { ...machineWith({ adapter: card, messages: '' }), hasGraphicsDevice: () => false, probe: () => Promise.reject(new Error('looked')) };
    expect(await opened('auto', machine)).toMatchObject({ kind: 'cpu', adapter: null, reason: 'no GPU: this system has no graphics device' });
  });

  it.skipIf(noGpu)('never takes an adapter that computes on the processor', async () => {
    const machine = { ...machineWith({ messages: '' }), probe: () => probeWebGpu() };
    expect(await opened('auto', machine)).toMatchObject({ kind: 'cpu', reason: expect.stringMatching(/^no GPU: the only adapter, .*SwiftShader.*, computes on the processor$/) });
  });

  it.each([
    ['no adapter', /WebGPU found no adapter/],
    ['crash', /the graphics driver crashed/],
    ['timeout', /did not answer/],
    ['error', /WebGPU does not run here/],
  ] as const)('takes the CPU after: %s', async (failure, reason) => {
    expect(await opened('auto', machineWith({ failure, messages: '' }))).toMatchObject({ kind: 'cpu', reason: expect.stringMatching(reason) });
  });

  it('takes the CPU where the GPU cannot be opened after all', async () => {
    const machine = machineWith({ adapter: card, messages: '' }, () => Promise.reject(new UsageError('no GPU: it is gone')));
    expect(await opened('auto', machine)).toMatchObject({ kind: 'cpu', reason: 'no GPU: it is gone' });
  });

  it.skipIf(noGpu)('takes the GPU where there is one', async () => {
    const machine = machineWith({ adapter: card, messages: '' }, () => GpuDevice.open());
    const { devices, device } = await openDevices({ device: 'auto', workers: 1 }, machine);
    expect(devices.map(({ kind }) => kind)).toEqual(['cpu', 'gpu']);
    expect(device).toMatchObject({ kind: 'gpu', adapter: expect.stringMatching(/swiftshader/) });
    for (const each of devices) await each.close();
  });
});

describe('device gpu', () => {
  it.skipIf(noGpu)('takes a software adapter with a warning', async () => {
    const { devices, device } = await openDevices({ device: 'gpu', workers: 1 });
    expect(device).toMatchObject({ kind: 'gpu', warning: expect.stringMatching(/computes on the processor/) });
    for (const each of devices) await each.close();
  });

  it.each([
    [{ failure: 'no adapter', messages: "Couldn't load Vulkan: libvulkan.so.1" }, /^no GPU: WebGPU found no adapter on this machine\. .*Vulkan.* Or use device cpu$/],
    [{ failure: 'crash', ending: 'SIGSEGV', messages: 'boom' }, /^no GPU: the graphics driver crashed\. .*SIGSEGV.* Or use device cpu$/],
  ] as const)('is an error without one, with what to do: %j', async (outcome, message) => {
    const error = await openDevices({ device: 'gpu', workers: 1 }, machineWith(outcome)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect(String((error as Error).message)).toMatch(message);
  });
});

describe('a signal while a driver is asked', () => {
  it.each(['auto', 'gpu'] as const)('cancels, whatever became of the probe: %s', async (device) => {
    const stop = new AbortController();
    const probe: Machine['probe'] = async (signal) => {
      stop.abort();
      return signal?.aborted ? { failure: 'crash', ending: 'SIGINT', messages: '' } : { failure: 'no adapter', messages: '' };
    };
    const opening = openDevices({ device, workers: 1, signal: stop.signal }, { ...machineWith({ messages: '' }), probe });
    await expect(opening).rejects.toBeInstanceOf(CancelledError);
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

  /** What the probe finds beside a driver that does this first. */
  function probeBeside(code: string): Promise<ProbeOutcome> {
    process.env.NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`;
    return probeWebGpu();
  }

  it('does not mind what a driver prints', async () => {
    const { adapter, failure } = await probeBeside(`process.stdout.write('{"a driver": says hi}\\n{ and');`);
    expect(adapter === undefined ? failure : 'an adapter').toMatch(/^(an|no) adapter$/);
  });

  it('tells the error that ended it', async () => {
    const outcome = await probeBeside(`throw new Error('no device for you')`);
    expect(explainProbe(outcome, 'linux')).toMatch(/The probe failed \(exit code 1\)\. It said: Error: no device for you\.$/);
  });
});

describe('parameters that cannot act on a device', () => {
  const params = { nonnegative: false, precision: 'auto', kernel: undefined } as const;

  it.each([
    [{ precision: 'f16' }, /^precision f16 cannot act on the CPU, which computes in float32 \(no GPU: .*\)\. Leave/],
    [{ kernel: 'update-tensor' }, /^kernel update-tensor cannot act on the CPU/],
  ] as const)('are refused: %j', async (more, message) => {
    const { devices, device } = await openDevices({ device: 'auto', workers: 1 }, machineWith({ failure: 'no adapter', messages: '' }));
    const session = { device, executor: { devices, close: async () => {} } };
    expect(() => trainingDevice(session, { ...params, ...more })).toThrow(message);
    expect(trainingDevice(session, params).text).toMatch(/^CPU: 1 thread, WebAssembly \S+ \(no GPU: WebGPU found no adapter on this machine\)$/);
    await devices[0].close();
  });

  it.skipIf(noGpu)('are refused on a GPU that was asked for by name', async () => {
    const { devices, device } = await openDevices({ device: 'gpu', workers: 1 });
    const session = { device, executor: { devices, close: async () => {} } };
    expect(() => trainingDevice(session, { ...params, nonnegative: true })).toThrow(/^nonnegative cannot act on a GPU/);
    expect(trainingDevice(session, params).text).toMatch(/^GPU: swiftshader/);
    for (const each of devices) await each.close();
  });
});

describe('a graphics device', () => {
  it('is looked for on Linux only: elsewhere the system itself has what a driver needs', () => {
    expect([hasGraphicsDevice('darwin'), hasGraphicsDevice('win32')]).toEqual([true, true]);
  });
});
