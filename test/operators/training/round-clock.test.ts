import { afterEach, describe, expect, it, vi } from 'vitest';
import { RoundClock } from '../../../operators/training/rounds.ts';

const endsAt = (milliseconds: number) => ({ ends: new Map([['gpu:0', milliseconds]]) }) as never;
const withoutClock = { ends: new Map() } as never;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Sets the host's clock, in milliseconds. */
function hostIsAt(milliseconds: number): void {
  vi.spyOn(performance, 'now').mockReturnValue(milliseconds);
}

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

  it('is by the host where the round was sent after the host had seen what came before', () => {
    const clock = new RoundClock();
    hostIsAt(1000);
    clock.round(endsAt(100), 990, false);
    hostIsAt(1001);
    clock.measured(endsAt(101));
    // Twenty milliseconds of the host, while the device was idle, do not count for the round.
    hostIsAt(1024);
    expect(clock.round(endsAt(150), 1021, false)).toBe(0.003);
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
      hostIsAt(1000);
      clock.round(before, 990, false);
      hostIsAt(1008);
      expect(clock.round(after, 995, true)).toBe(0.008);
    }
  });
});
