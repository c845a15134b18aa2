/** The devices of a session. A run on the CPU must not be disturbed by any GPU driver. */
import { describe, expect, it } from 'vitest';
import type { DeviceRequest } from '../../../api/devices/device-request.ts';
import {
  type Machine,
  type OpenedDevices,
  OpeningDevices,
  type SessionDevice,
} from '../../../api/devices/open-devices.ts';
import type { Session } from '../../../api/session.ts';
import { openedDevices, trainingDevice } from '../../../api/training/training-device.ts';
import { CancelledError, UsageError } from '../../../engine/errors.ts';
import type { Device, HostStore } from '../../../engine/run/device.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { Scope } from '../../../engine/run/scope.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import { hasGraphicsDevice } from '../../../gpu/probe/system-files.ts';
import { type ProbeOutcome, probeWebGpu } from '../../../gpu/probe/probe-webgpu.ts';
import { cpuInfo, h200Info } from '../../support/devices/device-info.ts';
import { card, machineWith, openedCard } from '../../support/gpu/machine.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { contextOf } from '../../support/steps/small-problems.ts';

async function opened(device: DeviceRequest, machine: Machine): Promise<OpenedDevices['device']> {
  await using opening = new OpeningDevices({ device, workers: 1 }, machine);
  return (await opening.all()).device;
}

describe('device auto', () => {
  it('starts no probe where the system has no graphics device', async () => {
    const machine: Machine = {
      ...machineWith({ adapter: card, messages: '' }),
      hasGraphicsDevice: () => false,
      probe: () => Promise.reject(new Error('looked')),
    };
    expect(await opened('auto', machine)).toMatchObject({
      kind: 'cpu',
      adapter: null,
      reason: 'no GPU: this system has no graphics device',
    });
  });

  it.skipIf(noGpu)('never takes an adapter that computes on the processor', async () => {
    const machine = { ...machineWith({ messages: '' }), probe: () => probeWebGpu() };
    expect(await opened('auto', machine)).toMatchObject({
      kind: 'cpu',
      reason: expect.stringMatching(/^no GPU: the only adapter, .*SwiftShader.*, computes on the processor$/),
    });
  });

  it.each([
    ['no adapter', /WebGPU found no adapter/],
    ['crash', /the graphics driver crashed/],
    ['timeout', /did not answer/],
    ['error', /WebGPU does not run here/],
  ] as const)('takes the CPU after: %s', async (failure, reason) => {
    expect(await opened('auto', machineWith({ failure, messages: '' }))).toMatchObject({
      kind: 'cpu',
      reason: expect.stringMatching(reason),
    });
  });

  it('takes the CPU when opening the GPU fails', async () => {
    const machine = machineWith({ adapter: card, messages: '' }, () =>
      Promise.reject(new UsageError('no GPU: it is gone')),
    );
    expect(await opened('auto', machine)).toMatchObject({ kind: 'cpu', reason: 'no GPU: it is gone' });
  });

  it.skipIf(noGpu)('takes the GPU where there is one', async () => {
    const machine = machineWith({ adapter: card, messages: '' }, () => openGpuDevice());
    await using opening = new OpeningDevices({ device: 'auto', workers: 1 }, machine);
    const { devices, device } = await opening.all();
    expect(devices.map(({ info }) => info.kind)).toEqual(['cpu', 'gpu']);
    expect(device).toMatchObject({ kind: 'gpu', adapter: expect.stringMatching(/swiftshader/) });
  });
});

describe('device gpu', () => {
  it.skipIf(noGpu)('takes a software adapter with a warning', async () => {
    await using opening = new OpeningDevices({ device: 'gpu', workers: 1 });
    expect((await opening.all()).device).toMatchObject({
      kind: 'gpu',
      warning: expect.stringMatching(/computes on the processor/),
    });
  });

  it.each([
    [
      { failure: 'no adapter', messages: "Couldn't load Vulkan: libvulkan.so.1" },
      /^no GPU: WebGPU found no adapter on this machine\. .*Vulkan.* Or use device cpu$/,
    ],
    [
      { failure: 'not installed', messages: '' },
      /^no GPU: the package webgpu is not installed\. .*Add it with npm install webgpu@.* Or use device cpu$/,
    ],
    [
      { failure: 'crash', ending: 'SIGSEGV', messages: 'boom' },
      /^no GPU: the graphics driver crashed\. .*SIGSEGV.* Or use device cpu$/,
    ],
  ] as const)('is an error without one, with what to do: %j', async (outcome, message) => {
    const error = await opened('gpu', machineWith(outcome)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect(String((error as Error).message)).toMatch(message);
  });
});

describe('a GPU that is opened beside other work', () => {
  it('comes to contexts that were made before', async () => {
    const found = Promise.withResolvers<ProbeOutcome>();
    await using opening = new OpeningDevices(
      { device: 'auto', workers: 1 },
      {
        ...machineWith({ messages: '' }),
        probe: () => found.promise,
        open: async () => openedCard(),
      },
    );
    const executor = new LocalExecutor([opening.openCpu()]);
    await Holdings.within(contextOf(executor), async (held) => {
      expect(held.executor.devices.map(({ info }) => info.place)).toEqual(['cpu']);
      found.resolve({ adapter: card, messages: '' });
      executor.add((await opening.all()).devices.slice(1));
      expect(held.executor.devices.map(({ info }) => info.place)).toEqual(['cpu', 'gpu:0']);
    });
    await executor.close();
  });

  it('ends the reading of ratings where it cannot be opened, with the reason', async () => {
    const opening = Promise.withResolvers<void>();
    const ctx = contextOf(new LocalExecutor([]));
    const session = { opening: true, opened: () => opening.promise } as unknown as Session;
    const reading = Scope.within(ctx, async (scope) => {
      const opened = scope.stage('open devices', {}, (_, own) =>
        openedDevices(session, { precision: 'auto' }, own),
      );
      const read = scope.stage('read', {}, async (_, { signal }) => {
        opening.reject(new UsageError('no GPU: it is gone'));
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw new CancelledError();
      });
      await Promise.all([read.result, opened.result]);
    });
    await expect(reading).rejects.toThrow('no GPU: it is gone');
  });

  it('leaves an error of the reading as it is', async () => {
    const ctx = contextOf(new LocalExecutor([]));
    const session = { opening: true, opened: () => new Promise<void>(() => {}) } as unknown as Session;
    const reading = Scope.within(ctx, async (scope) => {
      scope.stage('open devices', {}, (_, own) => openedDevices(session, { precision: 'auto' }, own));
      await scope.stage('read', {}, () => Promise.reject(new Error('row 3'))).result;
    });
    await expect(reading).rejects.toThrow('row 3');
  });
});

describe('parameters that cannot be used on a device', () => {
  const params = { precision: 'auto', kernel: undefined } as const;

  it.each([
    [{ precision: 'int8' }, /^precision int8 cannot be used on the CPU, which computes in float32/],
    [
      { precision: 'f16' },
      /^precision f16 cannot be used on the CPU, which computes in float32 \(no GPU: .*\)\. Leave/,
    ],
    [{ kernel: 'update-tensor' }, /^kernel update-tensor cannot be used on the CPU/],
  ] as const)('are refused: %j', async (more, message) => {
    await using opening = new OpeningDevices(
      { device: 'auto', workers: 1 },
      machineWith({ failure: 'no adapter', messages: '' }),
    );
    const { devices, device } = await opening.all();
    const executor = new LocalExecutor(devices);
    expect(() => trainingDevice(device, executor, { ...params, ...more })).toThrow(message);
    expect(trainingDevice(device, executor, params).text).toMatch(
      /^CPU: 1 thread, WebAssembly \S+ \(no GPU: WebGPU found no adapter on this machine\)$/,
    );
  });

  it.skipIf(noGpu)('act on a GPU that was asked for by name', async () => {
    await using opening = new OpeningDevices({ device: 'gpu', workers: 1 });
    const { devices, device } = await opening.all();
    const executor = new LocalExecutor(devices);
    expect(trainingDevice(device, executor, { precision: 'f16', kernel: 'tiled4-f16' }).text).toMatch(
      /^GPU: swiftshader/,
    );
  });

  it('tells of every GPU that works: all for ALS and SGD by blocks, one for other schedules', () => {
    const info = (place: 'gpu:0' | 'gpu:1' | 'cpu') =>
      place === 'cpu' ? cpuInfo : { ...h200Info, place, description: `NVIDIA H200 ${place}` };
    const devices = (['cpu', 'gpu:0', 'gpu:1'] as const).map((place) => ({ info: info(place) }) as Device);
    const executor = { devices, memory: {} as HostStore, close: async () => {} };
    const device = {
      kind: 'gpu',
      requested: 'gpu',
      adapter: 'NVIDIA H200',
      description: 'gpu:0 (NVIDIA H200), gpu:1 (NVIDIA H200)',
    } satisfies SessionDevice;
    const both = '2 GPUs: NVIDIA H200 gpu:0 | NVIDIA H200 gpu:1';
    expect(trainingDevice(device, executor, params).text).toBe(both);
    expect(trainingDevice(device, executor, { precision: 'auto', schedule: 'blocks' }).text).toBe(both);
    expect(trainingDevice(device, executor, { precision: 'auto', schedule: 'hogwild' }).text).toBe(
      'GPU: NVIDIA H200 gpu:0',
    );
  });
});

describe('a graphics device', () => {
  it('is looked for on Linux only: elsewhere the system has the files of a driver', () => {
    expect([hasGraphicsDevice('darwin'), hasGraphicsDevice('win32')]).toEqual([true, true]);
  });
});
