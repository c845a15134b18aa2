/**
 * Admission of stages within a memory limit: never beyond the limit and never deadlocked, in any order of
 * ends.
 */
import { describe, expect, it } from 'vitest';
import { Admission, type StageNeed } from '../../../engine/run/scope.ts';
import { testRandom } from '../../support/ratings.ts';

/** Stages that leave some of their bytes. */
function randomNeeds(random: () => number): StageNeed[] {
  return Array.from({ length: 2 + Math.floor(10 * random()) }, () => {
    const during = Math.floor(100 * random());
    return { during, left: Math.floor(during * random()) };
  });
}

/** The peak of the stages one by one. */
function peakInOrder(needs: readonly StageNeed[]): number {
  let [peak, live] = [0, 0];
  for (const { during, left } of needs) {
    peak = Math.max(peak, live + during);
    live += left;
  }
  return peak;
}

/**
 * Starts stages that may start and ends running ones, in random order; returns the most bytes and the most
 * concurrent stages.
 */
function runAll(needs: readonly StageNeed[], capacity: number, random: () => number) {
  const admission = new Admission(capacity);
  const waiting = new Set(needs.map(() => admission.add()));
  const working = new Set<number>();
  needs.forEach((need, stage) => admission.setNeed(stage, need));
  const pick = (among: readonly number[]) => among[Math.floor(random() * among.length)];
  let [most, atOnce] = [0, 0];
  while (waiting.size + working.size > 0) {
    const able = [...waiting].filter((stage) => admission.mayBegin(stage));
    if (able.length + working.size === 0) throw new Error('a stage waits for ever');
    if (able.length > 0 && (working.size === 0 || random() < 0.6)) {
      const stage = pick(able);
      waiting.delete(stage);
      working.add(stage);
      admission.begin(stage);
    } else {
      const stage = pick([...working]);
      working.delete(stage);
      admission.end(stage);
    }
    most = Math.max(most, admission.live);
    atOnce = Math.max(atOnce, working.size);
  }
  return { most, atOnce };
}

describe('stages within a bound of memory', () => {
  it('end in any order at exactly the peak of the list, without excess and without a hang', () => {
    let concurrent = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const random = testRandom(seed * 2654435761);
      const needs = randomNeeds(random);
      const peak = peakInOrder(needs);
      const { most, atOnce } = runAll(needs, peak, random);
      expect(most, `seed ${seed}`).toBeLessThanOrEqual(peak);
      if (atOnce > 1) concurrent++;
    }
    // Most schedules have room for two at a time.
    expect(concurrent).toBeGreaterThan(150);
  });

  it('work all at once where there is room', () => {
    const random = testRandom(1);
    const needs = randomNeeds(random);
    const admission = new Admission(1e6);
    needs.forEach((need) => admission.setNeed(admission.add(), need));
    for (const [stage] of needs.entries()) {
      expect(admission.mayBegin(stage)).toBe(true);
      admission.begin(stage);
    }
  });

  it('work alone where their bytes are not known', () => {
    const admission = new Admission(100);
    const [known, unknown, later] = [admission.add(), admission.add(), admission.add()];
    admission.setNeed(known, { during: 10, left: 0 });
    admission.setNeed(later, { during: 10, left: 0 });
    admission.begin(known);
    expect(admission.mayBegin(unknown)).toBe(false);
    // It would start before a stage whose need may be the whole limit.
    expect(admission.mayBegin(later)).toBe(false);
    admission.end(known);
    expect(admission.mayBegin(unknown)).toBe(true);
    admission.begin(unknown);
    expect(admission.mayBegin(later)).toBe(false);
    admission.end(unknown);
    expect(admission.mayBegin(later)).toBe(true);
  });

  it('that exceed the bound alone still work, one by one', () => {
    const admission = new Admission(10);
    const [first, second] = [admission.add(), admission.add()];
    for (const stage of [first, second]) admission.setNeed(stage, { during: 20, left: 0 });
    expect(admission.mayBegin(first)).toBe(true);
    admission.begin(first);
    expect(admission.mayBegin(second)).toBe(false);
    admission.end(first);
    expect(admission.mayBegin(second)).toBe(true);
  });
});
