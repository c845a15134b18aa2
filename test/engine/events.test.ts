import { afterEach, expect, test, vi } from 'vitest';
import { type ProgressEvent, startPhase } from '../../engine/events.ts';

afterEach(() => vi.useRealTimers());

test('a phase reports at most 20 times a second, and its last progress always', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const events: ProgressEvent[] = [];
  const phase = startPhase((event) => void events.push(event), 'read', 'rows', 1000);
  for (let done = 1; done <= 1000; done++) {
    phase.progress(done);
    vi.advanceTimersByTime(1);
  }
  phase.end(1000);
  const progress = events.filter((event) => event.type === 'phase-progress').map(({ done }) => done);
  expect(progress).toEqual([...Array.from({ length: 20 }, (_, i) => 1 + 50 * i), 1000]);
  expect(events.at(-1)).toMatchObject({ type: 'phase-end', done: 1000 });
});
