import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, Session } from '../../index.ts';
import { budgetOf, keptDataset, keptForms } from '../../api/training/kept-ratings.ts';
import { requireBudget } from '../../operators/planner/memory-budget.ts';
import { ratingsBatch } from '../support/tuning-ratings.ts';

describe('loaded forms of ratings that are kept', () => {
  const GIB = 2 ** 30;
  const planOf = (host: number, cpu = 0) =>
    ({ memory: { host, cpu }, devices: [{ place: 'cpu', ownMemory: false }] }) as unknown as PhysicalPlan;

  it('go where the budget does not hold them beside those of another fit', async () => {
    await using small = await Session.create({ device: 'cpu', workers: 1, memoryBudget: 2 * GIB });
    const loadsWith = async (bytes: number) => {
      const kept = keptForms(keptDataset(small.from([ratingsBatch(6, 4, 15)])))!;
      let loads = 0;
      const load = (form: string) => {
        kept.makeRoom(form, small);
        kept.noteBytes(form, planOf(bytes));
        return kept.load(`${form} blocks`, async () => ++loads);
      };
      for (const form of ['als a', 'sgd 0 true a', 'als a', 'als a']) await load(form);
      return loads;
    };
    expect(await loadsWith(GIB / 2)).toBe(2);
    expect(await loadsWith(GIB)).toBe(3);
  });

  it('count the factors of all fits at the same time', async () => {
    await using small = await Session.create({ device: 'cpu', workers: 1, memoryBudget: GIB });
    const ofTwo = budgetOf(keptDataset(small.from([ratingsBatch(6, 4, 15)]), 2));
    expect(() => requireBudget(planOf(0, GIB / 3), ofTwo)).not.toThrow();
    expect(() => requireBudget(planOf(0, GIB / 2), ofTwo)).toThrow(
      /factors 1.0 GiB of 2 runs.*but the memory budget is 1.0 GiB\. Raise memoryBudget to .*, make fewer runs at the same time/,
    );
    expect(() =>
      requireBudget(planOf(0, GIB / 2), budgetOf(small.from([ratingsBatch(6, 4, 15)]))),
    ).not.toThrow();
  });
});
