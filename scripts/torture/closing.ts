import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../index.ts';
import { callsOf, CLOSED, opened } from '../../test/support/mixed-work.ts';
import type { MakeAttack } from './attack.ts';

const SESSIONS = 4;
const CALLS = 10;
const MOST_DELAY_MILLISECONDS = 60;
const MOST_MILLISECONDS = 400;
/** A call, or `close`, that takes longer after the session was asked to close hangs. */
const PATIENCE_MILLISECONDS = 60_000;

/**
 * Closes sessions at random moments among calls of every kind: each call succeeds or throws the error that
 * the docs name, has ended when `close` has, and leaves no output that is not whole.
 */
export const closing: MakeAttack = ({ folder, random, count, find }) => {
  const [saved, output] = [join(folder, 'saved'), join(folder, 'output')];

  async function closeAmongWork(): Promise<void> {
    mkdirSync(output);
    const all = await opened();
    const calls = Object.entries(callsOf(all, saved, output));
    const chosen = Array.from({ length: CALLS }, () => calls.splice(random(calls.length), 1)[0]);
    const running = new Set(chosen.map(([name]) => name));
    const delays = chosen.map(() => random(MOST_DELAY_MILLISECONDS));
    const ended = chosen.map(async ([name, call], index) => {
      await pause(delays[index]);
      const outcome = await call().then(() => 'ended before', outcomeOf);
      running.delete(name);
      count(outcome === 'closed' || outcome === 'ended before' ? outcome : 'found');
      if (outcome !== 'closed' && outcome !== 'ended before') find(`${name} in a closed session: ${outcome}`);
    });
    await pause(random(MOST_MILLISECONDS));
    if (await hangs(all.session.close())) return find(`close hangs among ${[...running].join(', ')}`);
    const written = namesIn(output);
    if (await hangs(Promise.all(ended)))
      return find(`in a closed session these hang: ${[...running].join(', ')}`);
    if (namesIn(output) !== written) find(`after close the output is ${namesIn(output)}, before ${written}`);
    const left = readdirSync(output).filter((name) => name.startsWith('.'));
    if (left.length > 0) find(`a closed session leaves ${left.join(', ')}`);
    rmSync(output, { recursive: true });
  }

  return {
    name: 'closing',
    prepare: async () => {
      const { session, model } = await opened();
      await model.save(saved);
      await session.close();
      return undefined;
    },
    round: async () => {
      for (let left = SESSIONS; left > 0; left--) await closeAmongWork();
    },
  };
};

function outcomeOf(error: unknown): string {
  if (error instanceof UsageError && error.message === CLOSED) return 'closed';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function hangs(work: Promise<unknown>): Promise<boolean> {
  const stop = new AbortController();
  const late = pause(PATIENCE_MILLISECONDS, true, { signal: stop.signal }).catch(() => false);
  const isLate = await Promise.race([work.then(() => false), late]);
  stop.abort();
  return isLate;
}

function namesIn(folder: string): string {
  return readdirSync(folder, { recursive: true }).sort().join(', ');
}
