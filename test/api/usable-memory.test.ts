/** The memory budget of a session in a container is below the container's limit. */
import { totalmem } from 'node:os';
import { afterEach, expect, it, vi } from 'vitest';
import { Session } from '../../index.ts';

afterEach(() => void vi.restoreAllMocks());

const budgetWithin = async (limit: number) => {
  vi.spyOn(process, 'constrainedMemory').mockReturnValue(limit);
  await using session = await Session.create({ device: 'cpu', workers: 1 });
  return session.memoryBudget;
};

it.each([
  [2 ** 31, Math.floor(0.8 * 2 ** 31)],
  // Node has no figure, and a group of processes without a limit.
  [0, totalmem()],
  [2 ** 64, totalmem()],
])('a limit of %s bytes', async (limit, budget) => {
  expect(await budgetWithin(limit)).toBe(budget);
});
