import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RoundClock } from '../../../operators/training/round-clock.ts';

const endsAt = (milliseconds: number) => ({ ends: new Map([['gpu:0', milliseconds]]) }) as never;
const withoutClock = { ends: new Map() } as never;

describe('the time of a round', () => {
  it('is from the end of the measure before it to its own, by the clock of the device', () => {
    const clock = new RoundClock();
    const sent = performance.now();
    clock.round(endsAt(5_000_100), sent, false);
    clock.measured(endsAt(5_000_101));
    expect(clock.round(endsAt(5_000_103.5), sent, true)).toBeCloseTo(0.0025, 12);
    clock.measured(withoutClock);
    // The host learns of both ends at the same moment.
    expect(clock.round(endsAt(5_000_107.5), sent, true)).toBeCloseTo(0.004, 12);
  });

  it('is by the host where the round was sent after the host had seen what came before', async () => {
    const clock = new RoundClock();
    clock.round(endsAt(100), performance.now(), false);
    clock.measured(endsAt(101));
    await sleep(20);
    // Twenty milliseconds of the host's own, in which the device was idle, are not the round's.
    const seconds = clock.round(endsAt(150), performance.now(), false);
    expect(seconds).toBeGreaterThanOrEqual(0);
    expect(seconds).toBeLessThan(0.02);
  });

  it('is by the host for devices without a clock, for several of them, and where a clock went back', () => {
    for (const [before, after] of [
      [withoutClock, withoutClock],
      [withoutClock, endsAt(1000)],
      [
        endsAt(1000),
        { ends: new Map([...(endsAt(2e6) as { ends: Map<string, number> }).ends, ['gpu:1', 3e6]]) } as never,
      ],
      [endsAt(2000), endsAt(1000)],
    ]) {
      const clock = new RoundClock();
      const sent = performance.now();
      clock.round(before, sent, false);
      expect(clock.round(after, sent, true)).toBeLessThan(1);
    }
  });
});
