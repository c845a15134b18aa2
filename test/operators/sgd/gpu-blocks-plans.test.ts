import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { explain } from '../../../engine/plan/explain.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd, scheduleOf } from '../../../operators/sgd/plan.ts';
import { sharedSeconds } from '../../../operators/sgd/schedules/choose-schedule.ts';
import { convergenceReport } from '../../../operators/sgd/schedules/convergence.ts';
import { cpuInfo, h200Info as h200 } from '../../support/devices/device-info.ts';

/** Plans without what biases add, unless a case asks for them. */
const sgdParams = (params: Parameters<typeof checkSgdParams>[0]) =>
  checkSgdParams({ biases: false, ...params });

const second = { ...h200, place: 'gpu:1' };
const netflix = { users: 480_189, items: 17_770, ratings: 99_072_112 };
const golden = (name: string) => join(import.meta.dirname, '../../golden/plans', `${name}.txt`);

describe('the schedule blocks on GPUs', () => {
  const schedule = (params: Partial<SgdParams>, devices = [h200], problem: object = netflix) => {
    return scheduleOf(
      planSgd({ ...netflix, ...problem }, sgdParams({ rank: 128, ...params }), {
        compute: devices,
        host: cpuInfo,
      }),
    );
  };
  const small = (bytes: number): DeviceInfo => ({ ...h200, capacityBytes: bytes });

  const asked = { schedule: 'blocks' } as const;

  it('is not what auto takes with several where one is faster alone, and says so', () => {
    const one = planSgd(netflix, sgdParams({ rank: 128 }), { compute: [h200, second], host: cpuInfo });
    expect(one.devices.map(({ place }) => place)).toEqual(['gpu:0', 'cpu']);
    expect(scheduleOf(one)).toMatchObject({ kind: 'tile' });
    expect(scheduleOf(one).reasons.at(-1)).toMatch(
      /^one of 2 devices: an epoch takes about \d\.\d ms there, and \d+(\.\d)? ms on all of them, which pass 6\.5 MiB of columns on$/,
    );
    // With these columns each rating of a row is in another tile: YahooMusic's shape.
    const shape = { users: 1_000_990, items: 624_961, ratings: 252_800_275 };
    const shared = schedule({ biases: true }, [h200, second], shape);
    expect(shared).toMatchObject({
      kind: 'blocks',
      rowBands: 2,
      columnBands: 4,
      deviceBlocks: { resident: true, stays: true, movedBytes: 2 * 144 * 624_961 },
    });
    // Measured with biases: 24.2 ms on two H200s, where one takes 35.0, and 36.9 on two H100s, where one takes
    // 42.7. Without biases one is faster.
    const seconds = sharedSeconds(shape, sgdParams({ rank: 128, biases: true }), h200, shared);
    expect(seconds).toBeGreaterThan(0.0242);
    expect(seconds).toBeLessThan(0.0369);
    expect(schedule({}, [h200, second], shape).kind).toBe('tile');
    expect(schedule({ biases: true }, [h200], shape)).toMatchObject({
      kind: 'tile',
      tile: { tiles: 3564, places: 176, lanes: 4, threads: 512 },
    });
  });

  it('is what several share as requested', () => {
    expect(schedule(asked, [h200, second])).toMatchObject({
      kind: 'blocks',
      rowBands: 2,
      columnBands: 4,
      precision: 'f16',
      deviceBlocks: { steps: 'tile', resident: true, movedBytes: 3 * 128 * 17_770 },
    });
    expect(schedule(asked, [h200, second, { ...h200, place: 'gpu:2' }])).toMatchObject({
      rowBands: 3,
      columnBands: 6,
    });
    expect(schedule({ schedule: 'tile' }, [h200, second]).kind).toBe('tile');
    expect(schedule({}, [cpuInfo]).deviceBlocks).toBeUndefined();
  });

  it('is what auto takes on one that does not hold the others, in as many segments as leave room for two blocks', () => {
    expect([schedule({}).kind, schedule({}, [small(2.3 * 2 ** 30)]).kind]).toEqual(['tile', 'tile']);
    const staged = schedule({}, [small(2 ** 30)]);
    expect(staged).toMatchObject({ kind: 'blocks', rowBands: 1, deviceBlocks: { resident: false } });
    expect(staged.columnBands).toBeGreaterThan(4);
    expect(staged.reasons[0]).toBe('schedule auto: blocks, since schedule tile does not fit the GPU');
    expect(staged.reasons[2]).toBe(
      'blocks of ratings are staged, two at a time: one is stepped while the next is copied',
    );
    // Two of them hold all.
    expect(schedule({}, [small(1.5 * 2 ** 30), { ...small(1.5 * 2 ** 30), place: 'gpu:1' }])).toMatchObject({
      columnBands: 4,
      deviceBlocks: { resident: true },
    });
  });

  it('tells what was rejected, with the bytes needed and had of the device or of one of its buffers', () => {
    const rejected = (device: DeviceInfo) =>
      planSgd(netflix, sgdParams({ rank: 128 }), { compute: [device], host: cpuInfo });
    const staged = rejected(small(2 ** 30));
    expect(staged.memory['gpu:0']).toBeLessThanOrEqual(2 ** 30);
    expect(staged.reasons).toContainEqual(
      expect.stringMatching(
        /^rejected: schedule tile needs 2\.2 GiB \(\d+ bytes\), and gpu:0 has 1\.0 GiB \(1073741824 bytes\)$/,
      ),
    );
    expect(staged.reasons).toContainEqual(
      expect.stringMatching(
        /^rejected: 4 segments of columns with two blocks of ratings on the device needs 1\.\d GiB/,
      ),
    );
    const narrow = rejected({ ...h200, bindingBytes: 2 ** 28 });
    expect(narrow.choices.schedule).toMatchObject({ kind: 'blocks' });
    expect(narrow.reasons).toContainEqual(
      'rejected: schedule tile needs 755.9 MiB in one buffer for 99,072,112 ratings, and gpu:0 binds 256.0 MiB',
    );
  });

  it('tells how far teams of a block may disturb each other, and warns of few segments', () => {
    const two = schedule(asked, [h200, second]);
    const report = convergenceReport(netflix, two);
    expect(report).toMatchObject({
      leastSide: Math.floor(17_770 / 4),
      workers: two.workers,
      text: expect.stringMatching(
        /^no two GPUs share a row or a column, and in a block s = \d+ workers.*; expected collisions 4 s /,
      ),
    });
    expect(report.warning).toBeUndefined();
    const few = { users: 50, items: 3, ratings: 90 };
    expect(convergenceReport(few, schedule({ rank: 8, ...asked }, [h200, second], few)).warning).toMatch(
      /^the grid of 2 x 3 blocks has fewer than 2 segments for each of 2 GPUs/,
    );
  });

  it.each([
    ['netflix-sgd-blocks-two-gpus', asked, [h200, second]],
    ['netflix-sgd-blocks-staged', {}, [small(2 ** 30)]],
  ])('prints as %s.txt', async (name, params: Partial<SgdParams>, compute) => {
    await expect(
      `${explain(planSgd({ ...netflix, testRatings: 1_408_395 }, sgdParams({ rank: 128, ...params }), { compute, host: cpuInfo }))}\n`,
    ).toMatchFileSnapshot(golden(name));
  });
});
