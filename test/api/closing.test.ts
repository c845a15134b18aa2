/**
 * Closes a session, a model and a server while work is running. Running and later work must fail with the
 * one documented error, and must have ended when `close` returns.
 */
import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, Session, UsageError } from '../../index.ts';
import { randomOf } from '../support/damage/mutations.ts';
import { batches, callsOf, CLOSED, opened, rows } from '../support/mixed-work.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MOMENTS = 4;

const folder = temporaryFolder();
const saved = join(folder, 'saved');

/** Lets the event loop turn `count` times, so that work makes progress. Does not depend on a clock. */
async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
}

describe('a session that closes among work', () => {
  it(
    'ends all of it with one error, at any moment, and nothing is left half',
    { timeout: 300_000 },
    async () => {
      const random = randomOf(11);
      const outcomes = new Map<string, number>();
      for (let moment = 0; moment < MOMENTS; moment++) {
        const all = await opened();
        if (moment === 0) await all.model.save(saved);
        const output = mkdtempSync(join(folder, 'output-'));
        const calls = Object.entries(callsOf(all, saved, output));
        const chosen = Array.from({ length: 8 }, () => calls.splice(random(calls.length), 1)[0]);
        const ended = chosen.map(async ([name, call]) => {
          await turns(random(20));
          try {
            await call();
            return 'ended before';
          } catch (error) {
            expect(error, `${name} in moment ${moment}`).toBeInstanceOf(UsageError);
            expect((error as Error).message, `${name} in moment ${moment}`).toBe(CLOSED);
            return 'closed';
          }
        });
        await turns(random(2 ** random(12)));
        await all.session.close();
        const written = readdirSync(output, { recursive: true }).sort();
        for (const outcome of await Promise.all(ended))
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        expect(readdirSync(output, { recursive: true }).sort(), `moment ${moment}`).toEqual(written);
        expect(
          readdirSync(output).filter((name) => name.startsWith('.')),
          `moment ${moment}`,
        ).toEqual([]);
      }
      expect([...outcomes.keys()].sort()).toEqual(['closed', 'ended before']);
    },
  );

  it('refuses every later call with the same error', async () => {
    const all = await opened();
    const { session, model } = all;
    await session.close();
    for (const [name, call] of Object.entries(callsOf(all, saved, folder)))
      await expect(call(), name).rejects.toThrow(CLOSED);
    expect(model.userFactors.numRows).toBe(model.userCount);
    await model.close();
    await session.close();
  });

  it('does so at the end of a scope with `await using`, and for rows that a consumer holds', async () => {
    let running: Promise<unknown> | undefined;
    let iterator: AsyncIterator<unknown> | undefined;
    {
      await using session = await Session.create({ device: 'cpu', workers: 1 });
      const data = session.from(batches);
      running = new ALS({ rank: 4, maxIter: 10_000 }).fit(data);
      running.catch(() => undefined);
      iterator = data[Symbol.asyncIterator]();
      await iterator.next();
    }
    await expect(running).rejects.toThrow(CLOSED);
    await expect(iterator.next()).rejects.toThrow(CLOSED);
  });

  it('says so too where the caller cancels with it', async () => {
    const { session, data } = await opened();
    const stop = new AbortController();
    const running = new ALS({ rank: 4, maxIter: 10_000 }).fit(data, { signal: stop.signal });
    running.catch(() => undefined);
    await turns(5);
    stop.abort();
    await session.close();
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});

describe('a model that closes among requests', () => {
  it('answers those under way, and refuses later ones, at any moment', async () => {
    const { session, data, model: first } = await opened();
    const random = randomOf(5);
    const user = rows[0].user;
    await first.save(saved, { overwrite: true });
    for (let moment = 0; moment < MOMENTS; moment++) {
      const model = await session.loadModel(saved);
      const requests = Array.from({ length: 12 }, async () => {
        await turns(random(12));
        return model.recommend(user, 3).then(
          ({ items }) => items.length,
          (error: unknown) => (error as Error).message,
        );
      });
      await turns(random(12));
      await model.close();
      for (const outcome of await Promise.all(requests))
        expect([
          3,
          'the model is closed. Load it again, or close it when the last request has been answered',
        ]).toContain(outcome);
      await model.close();
    }
    expect((await first.recommend(user, 3)).items).toHaveLength(3);
    // Both at once.
    await Promise.all([first, session].map((one) => one.close()));
    await expect(data.count()).rejects.toThrow(CLOSED);
  });
});
