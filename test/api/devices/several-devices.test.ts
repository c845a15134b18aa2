/** GPUs by number, and one device used as several. */
import { describe, expect, it } from 'vitest';
import { checkDevice, type DeviceRequest } from '../../../api/devices/device-request.ts';
import { type Machine, type OpenDevicesOptions, OpeningDevices } from '../../../api/devices/open-devices.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { Card } from '../../../gpu/cards/find-cards.ts';
import { card, machineWith } from '../../support/gpu/machine.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';

describe('several devices', () => {
  /** `count` cards; `swap` maps an address to the card that it opens; without a mapping it opens the last. */
  function machineOf(count: number, swap: (number: number) => number = (number) => number) {
    const cards: readonly Card[] = Array.from({ length: count }, (_, number) => ({
      address: `0000:0${number}:00.0`,
      vendor: 'v',
    }));
    const used = cards.map(() => 5 << 20);
    const opened: string[] = [];
    let open = 0;
    const machine: Machine = {
      ...machineWith({ adapter: card, messages: '' }),
      findCards: () => cards,
      memoryUsed: async () => [...used],
      open: async ({ place = 'gpu:0', card: address }) => {
        const at = address === undefined ? 0 : swap(cards.findIndex((one) => one.address === address));
        let marked = 0;
        opened.push(`${place} is card ${at}`);
        open++;
        const device: Partial<Device> = {
          info: {
            place,
            kind: 'gpu',
            parallelism: 1,
            inOrder: true,
            wholePasses: true,
            ownMemory: true,
            capacityBytes: null,
            strideStep: 16,
            description: 'a card; f16',
          },
          allocate: (_, { rows, columns }) => void (marked = rows * columns * 4),
          run: async () => {
            used[at] += marked;
            return { metrics: { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: {} };
          },
          close: async () => {
            used[at] -= marked;
            open--;
          },
        };
        return { ...(device as Device), adapter: { name: 'a card', software: false } };
      },
    };
    return { machine, opened, openNow: () => open };
  }

  async function describes(options: OpenDevicesOptions, machine?: Machine) {
    await using opening = new OpeningDevices(options, machine);
    const { devices, device } = await opening.all();
    return { infos: devices.map(({ info: { place, parallelism } }) => [place, parallelism]), device };
  }

  it.each([
    ['in the order of their addresses', (number: number) => number],
    ['though addresses open one another', (number: number) => 2 - number],
  ])('are the cards of their numbers, %s', async (_, swap) => {
    const { machine, opened, openNow } = machineOf(3, swap);
    const { infos, device } = await describes({ device: 'gpu:2,0', workers: 1 }, machine);
    expect(infos).toEqual([
      ['cpu', 1],
      ['gpu:2', 1],
      ['gpu:0', 1],
    ]);
    expect(opened.slice(-2)).toEqual(['gpu:2 is card 2', 'gpu:0 is card 0']);
    expect(device).toEqual({
      requested: 'gpu:2,0',
      kind: 'gpu',
      adapter: 'a card',
      description: 'gpu:2 (a card; f16), gpu:0 (a card; f16)',
    });
    expect(openNow()).toBe(0);
  });

  it('are refused where the system gives one card for every address', async () => {
    const { machine, openNow } = machineOf(2, () => 0);
    await expect(describes({ device: 'gpu:0,1', workers: 1 }, machine)).rejects.toThrow(
      /cannot be distinguished: no address opened gpu:1 \(0000:01:00\.0\); that takes Mesa's device-select layer/,
    );
    expect(openNow()).toBe(0);
  });

  it.each<[DeviceRequest, number, RegExp]>([
    ['gpu:7', 1, /there is no gpu:7: this machine shows one GPU, gpu:0/],
    ['gpu:0,3', 3, /there is no gpu:3: this machine shows 3 GPUs, gpu:0 to gpu:2/],
  ])('must be there: %s of %i', async (device, count, message) => {
    await expect(describes({ device, workers: 1 }, machineOf(count).machine)).rejects.toThrow(message);
  });

  it('need Linux', async () => {
    const { machine } = machineOf(2);
    await expect(
      describes({ device: 'gpu:1', workers: 1 }, { ...machine, findCards: () => undefined }),
    ).rejects.toThrow(/by number on Linux only/);
  });

  it('are one where there is one: gpu:0 is opened without looking', async () => {
    const { machine, opened } = machineOf(1);
    expect((await describes({ device: 'gpu:0', workers: 1 }, machine)).device).toMatchObject({
      requested: 'gpu:0',
      description: 'a card; f16',
    });
    expect(opened).toEqual(['gpu:0 is card 0']);
  });

  it('can be one device several times: a CPU shares out its threads', async () => {
    const { infos, device } = await describes({ device: 'cpu', workers: 5, fakeDevices: 3 });
    expect(infos).toEqual([
      ['cpu', 2],
      ['cpu:1', 2],
      ['cpu:2', 1],
    ]);
    expect(device.description).toMatch(
      /^cpu \(2 threads, .*\), cpu:1 \(2 threads, .*\), cpu:2 \(1 thread, .*\)$/,
    );
    expect((await describes({ device: 'cpu', workers: 1, fakeDevices: 2 })).infos).toEqual([
      ['cpu', 1],
      ['cpu:1', 1],
    ]);
  });

  it.skipIf(noGpu)('can be one GPU several times', async () => {
    const { infos, device } = await describes({ device: 'gpu', workers: 3, fakeDevices: 2 });
    expect(infos).toEqual([
      ['cpu', 3],
      ['gpu:0', 1],
      ['gpu:1', 1],
    ]);
    expect(device).toMatchObject({
      kind: 'gpu',
      adapter: expect.not.stringContaining(','),
      description: expect.stringMatching(/^gpu:0 \(.*\), gpu:1 \(.*\)$/),
    });
  });

  it.each([['tpu'], ['gpu:'], ['gpu:a'], ['gpu:1,'], ['gpu:-1'], [7], [null]])(
    'are not named by %j',
    (given) => {
      expect(() => checkDevice(given)).toThrow(
        /^device must be auto, cpu, gpu or GPUs by number such as gpu:0,1, got /,
      );
    },
  );

  it('are named once', () => {
    expect(() => checkDevice('gpu:0,1,0', '--device')).toThrow('--device gpu:0,1,0 names gpu:0 twice');
  });
});
