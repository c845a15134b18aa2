/**
 * A run that continues after losing a device: with the right best round, and without partitions of the lost
 * attempt on other devices.
 */
import { describe, expect, it } from 'vitest';
import type { PartitionRef } from '../../engine/partition.ts';
import { isDeep } from '../support/deep.ts';
import { type Recording, recordAls, recordSgd, type RunProblem } from '../support/steps/recorded-runs.ts';
import { gpuInfo, mostly } from '../support/steps/small-problems.ts';
import { RandomTurns } from '../support/steps/turns.ts';

const compute = [gpuInfo(0), gpuInfo(1)];
const problem: RunProblem = { rows: mostly(40, 30), columns: 30, test: true, compute };
type Made = Awaited<ReturnType<typeof recordAls>> | Awaited<ReturnType<typeof recordSgd>>;
const algorithms: Record<string, (one: RunProblem, more: { readonly earlyStop?: number }) => Promise<Made>> =
  {
    als: (one, more) => recordAls(one, { rank: 4, maxIter: 6, ...more }, { held: true }),
    sgd: (one, more) => recordSgd(one, { rank: 4, maxIter: 6, ...more }, { held: true }),
  };

/** The running round, according to the events so far. */
function roundAt({ events }: Recording): number {
  let done = 0;
  for (const event of events) {
    if (event.type === 'warning') done = Number(/continues from [a-z]+ (\d+)/.exec(event.text)?.[1] ?? 0);
    if (event.type === 'iteration') done = event.iteration;
  }
  return done + 1;
}

const rmse = [0, 0.9, 0.8, 0.7, 0.75, 0.76, 0.77];

it('the bold driver continues with the rate of the epoch that was copied', async () => {
  const rates = async (lostAt?: number) => {
    const made = await recordSgd(
      {
        ...problem,
        test: false,
        options: (place) => (place === 'gpu:1' && lostAt !== undefined ? { lostAt } : {}),
      },
      { rank: 4, maxIter: 4, rate: 'bold' },
      { held: true },
    );
    const { iterations } = await made.train();
    return { rates: iterations.map(({ rate }) => rate), verbs: made.recording.devices[1].verbs };
  };
  const { rates: expected, verbs } = await rates();
  for (let n = 0; n < verbs; n += isDeep ? 11 : 37)
    expect({ n, rates: (await rates(n)).rates }).toEqual({ n, rates: expected });
});

describe.each(Object.keys(algorithms))('%s', (name) => {
  const make = algorithms[name];

  it('keeps the round with the least validation error when a device is lost at any step', async () => {
    const run = async (lostAt?: number) => {
      const turns = new RandomTurns(1);
      let recording: Recording | undefined;
      const grids: string[] = [];
      // The second of two grids is the validation set's: training is measured first.
      const isTest = ({ name: block }: PartitionRef) => {
        const grid = /grid#\d+/.exec(block)?.[0];
        if (grid !== undefined && !grids.includes(grid)) grids.push(grid);
        return grid === undefined ? block.includes('test') : grids.indexOf(grid) % 2 === 1;
      };
      const made = await make(
        {
          ...problem,
          options: (place) => ({
            turns,
            values: ({ kernel, inputs }) =>
              kernel === 'squared-error' && recording && isTest(inputs.block)
                ? { squared: rmse[roundAt(recording)] ** 2, count: 1 }
                : {},
            ...(place === 'gpu:1' && lostAt !== undefined ? { lostAt } : {}),
          }),
        },
        { earlyStop: 9 },
      );
      ({ recording } = made);
      const result = await made.train();
      return { result, verbs: recording.devices[1].verbs };
    };
    const { verbs } = await run();
    for (let n = 0; n < verbs; n += (name === 'sgd' ? 17 : 5) * (isDeep ? 1 : 5)) {
      const { result } = await run(n);
      expect({
        n,
        best: result.bestIteration,
        told: result.iterations.map(({ iteration }) => iteration),
      }).toEqual({ n, best: 3, told: [1, 2, 3, 4, 5, 6] });
    }
  });

  it('frees the partitions of the attempt before on the remaining device', async () => {
    const peakOf = async (devices: RunProblem['compute'], lostAt?: number) => {
      const made = await make(
        {
          ...problem,
          compute: devices,
          options: (place) => (place === 'gpu:1' && lostAt !== undefined ? { lostAt } : {}),
        },
        {},
      );
      await made.train();
      const [device, other] = made.recording.devices;
      return { peak: device.peak, verbs: other.verbs };
    };
    const { peak: both, verbs } = await peakOf(compute);
    // In blocks, since the remaining device continues that way.
    const alone = (await peakOf([compute[0]])).peak;
    const after = (await peakOf(compute, Math.floor(verbs / 2))).peak;
    expect(after).toBeLessThanOrEqual(1.2 * Math.max(alone, both));
  });
});
